# An image with the command `evalstore`: `docker build -t evalstore .`, then
# `docker run --rm -v "$PWD:/workspace" evalstore run`. docs/install.md says more.

FROM python:3.12-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
COPY --from=build /source/constraints.txt /wheels/*.whl /wheels/
RUN wheel=$(echo /wheels/evalstore-*.whl) \
    && pip install --no-cache-dir --root-user-action=ignore --constraint /wheels/constraints.txt \
        "${wheel}[mcp,similarity]" \
    && useradd --create-home --uid 1000 evalstore \
    && mkdir /workspace \
    && chown evalstore /workspace
USER 1000
# An image that cannot run the example is not made.
RUN evalstore init /tmp/example --example \
    && evalstore -C /tmp/example run --fail-on none --progress none \
    && evalstore -C /tmp/example fsck \
    && rm -r /tmp/example
WORKDIR /workspace
ENTRYPOINT ["evalstore"]
CMD ["--help"]
