"""Hints on settings of promptfoo, Inspect and DeepEval that have another name here."""

from __future__ import annotations

_CANDIDATES = "write 'candidates'"
_EVALUATORS = "write 'evaluators'"
_CHECKS = "checks are in the test files, in a block '~~~checks' below the last '---'"
_PROMPTS = "a system prompt is a file in 'prompts/'; a test file names it under 'systemPrompts'"
_TESTS = "a test is a file in 'tests/'"
_HINTS = {
    "provider providers target targets model models": _CANDIDATES,
    "judge judges grader graders scorer scorers evaluationmodel judgemodel": _EVALUATORS,
    "metric metrics assert asserts assertions checks": _CHECKS,
    "prompt prompts systemprompt systemprompts systemmessage": _PROMPTS,
    "test tests task tasks testcase testcases scenario scenarios": _TESTS,
    "defaulttest": "variables and checks are in the test files; rows can share a dataset",
    "data dataset datasets goldens": "a test file names its dataset in the field 'dataset'",
    "tool tools": "a tool is a file in 'tools/'; a test file names it under 'availableTools'",
    "evaluateoptions": "write 'attempts' for 'repeat', and 'concurrency' for 'maxConcurrency'",
    "rubricprompt": "write 'prompt' at an entry of 'evaluators'",
    "epoch epochs repeat repetitions samples": "write 'attempts'",
    "maxconcurrency maxconcurrent maxconnections": "write 'concurrency'",
    "temperature": "write 'candidatesTemperature'",
    "maxtokens maxoutputtokens": "write 'maxTestOutputTokens'",
    "maxretries": "write 'retries'",
    "costlimit budget maxbudget": "write 'maxCost'",
    "timelimit": "write 'maxTime'",
    "outputpath logdir": "'evalstore export -o FILE' and 'evalstore report -o FILE' write results",
}
"""From names to their hint."""

ELSEWHERE = {name: hint for names, hint in _HINTS.items() for name in names.split()}
"""From a name, in lower-case letters alone, to the hint."""
