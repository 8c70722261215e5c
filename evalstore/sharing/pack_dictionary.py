"""The text that the compression of records begins with: what most contents have in common.

A record is compressed alone, so that it can be read alone, and is often shorter than the names
of its fields. With this text a typical answer takes a third less, and a judgement half. It is a
part of the format: records that were written with it cannot be read with another one.
"""

from __future__ import annotations

_RUN = (
    '{"asked":0,"author":"","candidates":[{"id":"","model":"","temperature":0.0}],"cases":[0,0],'
    '"cost":0.0,"ended":17,"evaluators":[{"evaluator":"","id":""}],"failed":0,"git":{"commit":"",'
    '"dirty":false},"judged":0,"kind":"run","message":"","nonce":"","recorded":0,"results":"",'
    '"reused":0,"scheme":1,"selection":{"models":[""],"paths":["tests/.md"]},"settings":{"attempts"'
    ':1,"evaluationsPerEvaluator":1,"maxTestOutputTokens":null,"verdict":"majority"},"snapshot":"",'
    '"spending":[{"cachedTokens":0,"calls":1,"cost":0.0,"inputTokens":0,"model":"","outputTokens":0'
    ',"part":"candidate"},{"part":"evaluator"}],"started":17,"status":"complete","status":'
    '"incomplete","verdicts":{"error":0,"fail":0,"pass":0,"pending":0,"undecided":0},"version":'
    '"0.1.0"}'
)
_MODEL = (
    '{"baseURL":"https://api.","code":"openai","kind":"model","options":{"maxOutputTokens":'
    ',"reasoningEffort":"","temperature":0,"topP":},"provider":"","scheme":1}'
    '{"kind":"evaluator","model":"","prompt":"","scheme":1,"temperature":0}'
)
_VERSIONS = (
    '{"digest":"","kind":"file","mediaType":"image/png","scheme":1,"size":}'
    '{"description":"","kind":"tool","name":"","parameters":{"additionalProperties":false,'
    '"properties":{"":{"description":"","enum":[""],"type":"string"},"":{"minimum":0,"type":'
    '"integer"},"":{"items":{"type":"object"},"type":"array"}},"required":[""],"type":"object"}}'
    '{"kind":"schema","schema":{"type":"object"},"scheme":1}'
    '{"kind":"prompt","messages":[{"content":"You are a helpful assistant.","role":"system"}],'
    '"scheme":1,"specialTags":["_evaluator","_json_mode"]}'
    '{"checks":[{"given":{"equals":"","ignoreCase":true},"pattern":"","revision":1,"scope":"case",'
    '"templates":[[[""],""]],"turns":{},"type":"regex"},{"type":"equals"},{"type":"contains"},'
    '{"name":"","type":"expr"},{"prompts":[""],"type":"judge"}],"instructions":[{"text":"The answer'
    ' must be "},{"answers":[[0,0]]}],"kind":"evaluation","scheme":1}'
)
_NODES = (
    '{"children":{"0":"","1":""},"kind":"tree","scheme":1}{"entries":{"tests/.md":""},"kind":"tree"'
    ',"scheme":1}{"counts":[256,256],"kind":"cases","level":1,"parts":["",""],"scheme":2}'
    '{"cases":[{"evaluation":"","judgedBy":["checks","models"],"key":"","prompts":[""],"row":"",'
    '"tags":[""],"tests":[""]},{"evaluation":"","key":"","row":"","tests":[""]}],"kind":"cases",'
    '"scheme":1}{"cases":"","cells":[{"case":0,"evaluations":[""],"model":"","prompt":0,"sessions":'
    '[""],"verdict":"fail"},{"case":1,"evaluations":[""],"model":"","sessions":[""],"verdict":'
    '"pass"}],"kind":"results","scheme":1}'
)
_TEST = (
    '{"kind":"test","messages":[{"content":[{"text":""},{"file":"","mediaType":"image/png","path":'
    '"files/"}],"role":"user"},{"filled":true,"role":"assistant"},{"content":"Answer with ","role":'
    '"user"}],"options":{"temperature":0},"scheme":1,"tools":[""]}'
    '{"kind":"test","messages":[{"content":"","role":"system"},{"content":"","role":"user"}],'
    '"scheme":1}'
)
_JUDGEMENT = (
    '{"checks":[{"feedback":"expected ","name":"","type":"equals","verdict":"fail"},{"type":'
    '"contains","verdict":"pass"}],"cost":{"price":{"inputToken":,"outputToken":,"source":"costs"},'
    '"usd":0.00},"evaluation":"","evaluator":"4e746071c4fc6b446646257b6aca27ff","feedback":"The '
    'response does not ","kind":"judgement","label":"","latency":0.,"nonce":"","origin":"run",'
    '"reasoning":"","scheme":1,"score":1.0,"sessions":[""],"started":17,"usage":{"inputTokens":,'
    '"outputTokens":},"verdict":"fail"}{"evaluation":"","evaluator":"","kind":"judgement","nonce":'
    '"","origin":"run","scheme":1,"sessions":[""],"started":17,"verdict":"pass"}'
)
_SESSION = (
    '{"cost":{"price":{"currency":"EUR","inputToken":2.5e-06,"outputToken":1e-05,"source":"litellm"'
    '},"usd":0.000},"kind":"session","limit":,"model":"","nonce":"","origin":"run","prompt":"",'
    '"scheme":1,"seed":,"started":17,"temperature":0,"test":"","turns":[{"finishReason":"tool_calls"'
    ',"latency":1.,"requestId":"chatcmpl-","resolvedModel":"","text":"","toolCalls":[{"arguments":{'
    '},"id":"call_","name":""}],"usage":{"cachedTokens":0,"inputTokens":,"outputTokens":,'
    '"reasoningTokens":}},{"finishReason":"stop","latency":0.,"resolvedModel":"","text":"The ",'
    '"usage":{"inputTokens":,"outputTokens":}}]}'
)
DICTIONARY = "".join((_RUN, _MODEL, _VERSIONS, _NODES, _TEST, _JUDGEMENT, _SESSION)).encode()
"""What is near its end costs least to refer to: answers and judgements are the most rows."""
