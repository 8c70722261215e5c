"""Finds the key of a provider, and decides whether it may be sent to the provider's host.

A key in the workspace's own `.env` is sent to any host that the workspace names. A variable of the
user's environment goes to the service that it belongs to, and elsewhere only with the user's
consent. The endpoints that a plan needs are opened with these keys.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evalstore.core.clock import now, today
from evalstore.core.display import shorten
from evalstore.core.errors import EvalstoreError
from evalstore.files.atomic_write import default_place
from evalstore.files.processes.application import APPLICATIONS, Application
from evalstore.planning.participants import find
from evalstore.providers import Provider, credentials, open_provider
from evalstore.providers.base import OPENAI_COMPATIBLE, SCRIPTED, litellm_name, plugged_in
from evalstore.providers.base_urls import covers, host_of, is_loopback, split_base_url
from evalstore.runs.execution.limits.rate_limiter import Account
from evalstore.runs.execution.model_calls import Endpoint
from evalstore.workspace.folder import read_env_files
from evalstore.workspace.model_files import Model, Part, ProviderFile
from evalstore.workspace.reader import Reading
from evalstore.workspace.trust import ALLOWED_VARIABLES, Grant, TrustList, read_allowed

_KEY_ENDS = ("_KEY", "_TOKEN")
"""Suffixes of the variables of a `.env` file that an application may get."""
_SHOWN = 5
"""The most names of a list that are shown."""
_KNOWN_PREFIXES = ("AI_TESTER_", "MAX_", "EVALSTORE_")
"""Prefixes of variables of which nothing is said here: `init --from` reads them, or commands warn.
"""


class KeyNotAllowedError(EvalstoreError):
    """Variables of the user's environment would be sent to hosts that are not allowed."""

    def __init__(self, wanted: Sequence[tuple[str, str, str]]) -> None:
        """`wanted` are variables and hosts, each with the code of the provider that wants it."""
        requests = "; ".join(_request(*each) for each in wanted)
        commands = "; ".join(f"evalstore trust env {name} {host}" for name, host, _ in wanted)
        pairs = ",".join(f"{name}={host}" for name, host, _ in wanted)
        hosts = "that host" if len(wanted) == 1 else "those hosts"
        super().__init__(
            f"{requests}, which you have not allowed",
            hint=f"if you trust {hosts}: {commands}; in CI set EVALSTORE_ALLOW_ENV={pairs}",
        )
        self.wanted = wanted


def _request(variable: str, host: str, provider: str) -> str:
    wants = f"the provider '{provider}' of this workspace wants {variable} of your environment"
    return f"{wants} to be sent to {host}"


@dataclass(frozen=True, slots=True)
class Environment:
    """Variables that can hold keys: those of the user, and those of the workspace."""

    user: Mapping[str, str]
    workspace: Mapping[str, str]
    """Variables of the `.env` files, which are not put into the environment of any process."""
    warnings: tuple[str, ...] = ()

    def has(self, name: str) -> bool:
        """Return whether the user or the workspace has set a variable to a non-empty value."""
        return bool(self.user.get(name, "").strip() or self.workspace.get(name, "").strip())

    def origin(self, name: str, value: str | None) -> str | None:
        """Return the origin of a variable's value, in words; None if it has another value."""
        user, workspace = self.user.get(name, "").strip(), self.workspace.get(name, "").strip()
        if not value or value not in (user, workspace):
            return None
        if user == workspace:
            return "the same in the environment and in .env"
        here, there = ("the environment", ".env") if value == user else (".env", "the environment")
        return f"from {here}" + (f", not the other one of {there}" if user and workspace else "")


@dataclass(frozen=True, slots=True)
class ProviderAccess:
    """The address, the key and the parameters of a provider."""

    base_url: str | None = None
    api_key: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Parameters for litellm, from the other variables of a `.env` file."""
    warning: str | None = None


def read_environment(root: Path, named: Collection[str] = ()) -> Environment:
    """Read the user's environment and the workspace's `.env` files; raises `EvalstoreError`.

    `named` are variables that provider files name. Other variables count only if they belong to a
    provider.
    """
    values: dict[str, str] = {}
    warnings: list[str] = []
    for file, read in read_env_files(root).items():
        counted = {
            name: value
            for name, value in read.values.items()
            if name in named or credentials.is_provider_variable(name)
        }
        ignored = [name for name in read.values if name not in counted]
        ignored = [name for name in ignored if not name.startswith(_KNOWN_PREFIXES)]
        if ignored:
            reason = "only keys and addresses of providers are read"
            warnings.append(f"{file}: no effect: {_list(ignored)}; {reason}")
        if read.unread:
            lines = _list([str(line) for line in read.unread])
            warnings.append(f"{file}: not of the form NAME=value, so ignored: line {lines}")
        values = counted | values
    return Environment(dict(os.environ), values, tuple(warnings))


def named_variables(models: Iterable[Model]) -> set[str]:
    """Return the variables that provider files name for keys, and model files for applications."""
    names: set[str] = set()
    for model in models:
        names.add(model.provider.key_variable or "")
        if model.application:
            names.update(filter(_may_come_from_workspace, model.application.variables))
    return names


def find_variables(environment: Environment, names: Iterable[str]) -> dict[str, str]:
    """Return the values of those variables of an application that are set.

    The user's values take precedence. Variables of the workspace's `.env` count only if their names
    are those of keys: others, such as `LD_PRELOAD`, could make the application run other code.
    """
    values = {}
    for name in names:
        value = environment.user.get(name) or (
            environment.workspace.get(name) if _may_come_from_workspace(name) else None
        )
        if value:
            values[name] = value
    return values


def _may_come_from_workspace(name: str) -> bool:
    return name.endswith(_KEY_ENDS)


def _list(names: list[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest:,} more" if rest > 0 else "")


class KeyAccess:
    """Looks up keys, and checks what the user has allowed."""

    def __init__(
        self, environment: Environment, agrees: Callable[[str], bool] = lambda question: False
    ) -> None:
        """`agrees` asks the user a question; permissions are stored."""
        self.environment = environment
        self._agrees = agrees
        self._trust_list: TrustList | None = None

    def find(self, provider: ProviderFile) -> ProviderAccess:
        """Return the address and key of a provider; raises `KeyNotAllowedError`."""
        kind = provider.type
        if kind == SCRIPTED or kind in APPLICATIONS:
            return ProviderAccess()
        if kind in OPENAI_COMPATIBLE:
            base = provider.base_url or OPENAI_COMPATIBLE[kind]
            host = host_of(base) if base else kind
            key = self._find_key(provider, [provider.key_variable], base, host)
            return ProviderAccess(provider.base_url, key, warning=_warn(base, key, provider))
        if kind in plugged_in():
            return ProviderAccess()
        return self._find_litellm(provider)

    def _find_litellm(self, provider: ProviderFile) -> ProviderAccess:
        user, both = self.environment.user, self.environment.workspace
        workspace = {name: value for name, value in both.items() if not user.get(name)}
        kind, base = provider.type, provider.base_url
        if base is None and credentials.find_base(kind, user) is None:
            base_variable = credentials.find_base(kind, workspace)
            base = base_variable[1].rstrip("/") if base_variable else None
            if base_variable and split_base_url(base_variable[1]) is None:
                hint = "write it as in 'http://localhost:8000/v1'"
                raise EvalstoreError(f".env: {base_variable[0]} is not a base URL", hint=hint)
        parameters = credentials.find_parameters(kind, workspace)
        names = [provider.key_variable] if provider.key_variable else None
        names = names or credentials.usual_variables(kind, {**workspace, **user})[:1]
        if base is None:
            if not provider.key_variable:
                # litellm itself reads the user's own variables, and sends them to its own host.
                names = [name for name in names if name in workspace]
            key = self._find_key(provider, names, None, litellm_name(kind))
            return ProviderAccess(None, key, parameters)
        host = host_of(base)
        ambient = credentials.find_ambient(kind, user)
        if ambient:
            self._require(ambient, host, provider)
        key = self._find_key(provider, names, base, host)
        return ProviderAccess(base, key, parameters, _warn(base, key, provider))

    def _find_key(
        self, provider: ProviderFile, names: Sequence[str | None], base: str | None, host: str
    ) -> str | None:
        """Return the value of the first variable that is set; raises `KeyNotAllowedError`."""
        environment = self.environment
        for name in filter(None, names):
            user_key = environment.user.get(name, "").strip()
            workspace_key = environment.workspace.get(name, "").strip()
            # The workspace already has a key that is also in its own file.
            if not user_key or user_key == workspace_key:
                if workspace_key:
                    return workspace_key
                continue
            if _is_own_host(provider, name, base, host) or self._allows(name, host):
                return user_key
            if workspace_key:
                return workspace_key
            self._require(name, host, provider)
            return user_key
        return None

    def _allows(self, variable: str, host: str) -> bool:
        allowed = read_allowed(self.environment.user.get(ALLOWED_VARIABLES, ""))
        if any(grant.variable == variable and covers(grant.host, host) for grant in allowed):
            return True
        return self._trusted().allows_sending(variable, host)

    def _require(self, variable: str, host: str, provider: ProviderFile) -> None:
        """Raise `KeyNotAllowedError` unless a variable may be sent to a host; the user is asked."""
        if self._allows(variable, host):
            return
        if self._agrees(f"{_request(variable, host, provider.code)}, from now on"):
            self._trusted().grant(Grant(variable, host, now()))
            return
        raise KeyNotAllowedError([(variable, host, provider.code)])

    def _trusted(self) -> TrustList:
        if self._trust_list is None:
            self._trust_list = TrustList(default_place())
        return self._trust_list


def _is_own_host(provider: ProviderFile, variable: str, base: str | None, host: str) -> bool:
    """Return whether a variable belongs to the service at a host, so that no consent is needed."""
    if provider.base_url is None and base == OPENAI_COMPATIBLE.get(provider.type):
        # The usual host of a kind of provider; for kinds of litellm, its own.
        return bool(credentials.usual_variables(provider.type, (variable,)))
    secure = base is not None and base.startswith("https://")
    return secure and variable in credentials.KNOWN_HOSTS.get(host, ())


def _warn(base: str | None, key: str | None, provider: ProviderFile) -> str | None:
    if key and base and base.startswith("http://") and not is_loopback(host_of(base)):
        host = host_of(base)
        return f"the key of provider '{provider.code}' is sent to {host} unencrypted: use https"
    return None


NO_VARIABLE = (
    "name the variable that holds the key in 'apiKeyEnvVar' of the provider file: it names none"
)


@dataclass(frozen=True, slots=True)
class MissingKey:
    """The key of a provider that is not set."""

    provider: str
    """The code of the provider."""
    variable: str | None
    """The variable that should hold it; None if the provider file names none."""
    host: str | None
    """The hosted service that needs it; None if the server may need none."""

    @property
    def message(self) -> str:
        """Return what is missing, in words."""
        if self.variable:
            return f"{self.variable} is not set"
        return f"{self.host} needs a key, and the provider '{self.provider}' names no variable"

    @property
    def hint(self) -> str:
        """Return how to set the key."""
        return hint_to_set(self.variable) if self.variable else NO_VARIABLE


def hint_to_set(*variables: str) -> str:
    """Return how to set variables of keys."""
    return f"set {_join_names(variables)} in the environment, or in the workspace's .env"


def find_missing_key(provider: ProviderFile, environment: Environment) -> MissingKey | None:
    """Return the key of a provider that is not set; None if it is set, or there is none to set."""
    kind, is_own = provider.type, provider.type in OPENAI_COMPATIBLE
    base = provider.base_url or OPENAI_COMPATIBLE.get(kind)
    if base is None and not is_own:
        variables = (environment.user, environment.workspace)
        named = (credentials.find_base(kind, values) for values in variables)
        base = next((variable[1] for variable in named if variable), None)
    host = credentials.SERVICE_HOSTS.get(kind)
    if base is not None:
        host = host_of(base) if split_base_url(base) else None
    if host not in credentials.KNOWN_HOSTS or (not is_own and kind in plugged_in()):
        host = None  # the server may need no key, and a package finds its own
    names = [provider.key_variable] if provider.key_variable else []
    if host and not names and not (is_own and provider.base_url):
        names = credentials.usual_variables(kind, credentials.KNOWN_HOSTS[host])[:1]
    variable = next(iter(names), None)
    if host and not is_own and not (provider.base_url and provider.key_variable):
        # A key of a `.env` file is passed on only if it is not another one that the file names.
        known = {**environment.user, **({} if provider.key_variable else environment.workspace)}
        names += credentials.usual_variables(kind, known)
    if any(map(environment.has, names)):
        return None
    return MissingKey(provider.code, variable, host) if variable or host else None


def require_set(models: Iterable[Model], environment: Environment) -> None:
    """Raise `EvalstoreError` for all models that cannot be called because their key is not set."""
    needed: dict[MissingKey, list[str]] = {}
    for model in models:
        missing = find_missing_key(model.provider, environment)
        if missing and missing.host:
            needed.setdefault(missing, []).append(f"'{model.id}'")
    if not needed:
        return
    messages = (
        f"{missing.message}, so {_join_names(ids)} cannot be called"
        for missing, ids in needed.items()
    )
    variables = dict.fromkeys(missing.variable for missing in needed if missing.variable)
    hints = [hint_to_set(*variables)] if variables else []
    hints += [] if all(missing.variable for missing in needed) else [NO_VARIABLE]
    raise EvalstoreError("; ".join(messages), hint="; ".join(hints))


def _join_names(words: Sequence[str]) -> str:
    start = ", ".join(words[:-1])
    return f"{start} and {words[-1]}" if start else words[-1]


# --- variables that a command would send to hosts that are not allowed


def find_refusal(keys: KeyAccess, models: Iterable[Model]) -> KeyNotAllowedError | None:
    """Return an error about the refused keys of these models, whose hint allows all of them."""
    found: dict[tuple[str, str], tuple[str, str, str]] = {}
    for model in models:
        try:
            keys.find(model.provider)
        except KeyNotAllowedError as error:
            [wanted] = error.wanted
            found.setdefault(wanted[:2], wanted)
        except EvalstoreError:  # opening the provider reports the error
            continue
    return KeyNotAllowedError([*found.values()]) if found else None


class ProviderPool:
    """Opens providers with their keys; each account is opened once."""

    def __init__(
        self, root: Path, reading: Reading, agrees: Callable[[str], bool] = lambda question: False
    ) -> None:
        """`agrees` asks the user whether a variable may be sent to a host."""
        self.day = today()
        named = named_variables(reading.models.values())
        self.environment = read_environment(root, named)
        self.notes: list[str] = [*self.environment.warnings]
        """Notes for the user before the first call."""
        self.keys = KeyAccess(self.environment, agrees)
        self._currencies = reading.currencies
        self._open: dict[tuple[object, ...], tuple[Provider, Account]] = {}

    def endpoint(self, model: Model, part: Part, temperature: float | None) -> Endpoint:
        """Return the endpoint of a model; raises `EvalstoreError` when it cannot be called."""
        provider = model.provider
        access = self.keys.find(provider)
        missing = find_missing_key(provider, self.environment)
        if missing and missing.variable:
            self._note(f"{missing.message}, so '{model.id}' is called without a key")
        if access.warning:
            self._note(access.warning)
        key = (
            provider.type,
            access.base_url,
            access.api_key,
            model.id if provider.type == "scripted" or model.application else None,
        )
        if key not in self._open:
            opened = (
                self._open_application(model, model.application)
                if model.application
                else open_provider(
                    provider.type,
                    base_url=access.base_url,
                    api_key=access.api_key,
                    parameters=access.parameters,
                    responses=model.responses,
                    supports_structured_outputs=provider.structured,
                )
            )
            account = Account(
                f"{provider.code} {len(self._open)}",
                f"{provider.code} {access.base_url or ''}".strip(),
                provider.concurrency,
                provider.requests_per_minute,
                provider.tokens_per_minute,
            )
            self._open[key] = opened, account
        opened, account = self._open[key]
        return Endpoint(
            model=model,
            version=model.version(part),
            provider=opened,
            price=find(model, self._currencies, self.day),
            temperature=temperature,
            structured=provider.structured and model.capabilities.get("structured") is not False,
            account=account,
        )

    def _open_application(self, model: Model, application: Application) -> Provider:
        """Return the provider of an application, which runs nothing unless the user trusts it."""
        from evalstore.providers.applications import ApplicationProvider

        environment = find_variables(self.environment, application.variables)
        for name in application.variables:
            if name not in environment:
                self._note(f"{name} is not set, so '{model.id}' is called without it")
        return ApplicationProvider(
            application,
            environment,
            untrusted=self.find_untrusted(model),
            supports_structured_outputs=model.provider.structured,
        )

    @staticmethod
    def find_untrusted(model: Model) -> str | None:
        """Return a message if the application of a model is not trusted; else None."""
        application = model.application
        if not application:
            return None
        if TrustList(default_place()).allows_application(application.digest):
            return None
        return f"{shorten(application.code)} is not trusted on this machine"

    def _note(self, note: str) -> None:
        self.notes += [] if note in self.notes else [note]

    async def close(self) -> None:
        """Close every provider that was opened."""
        for provider, _ in self._open.values():
            await provider.close()
