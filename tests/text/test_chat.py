"""The chat template: what it renders, what it refuses, and that BOS comes once."""

import json
import re
from pathlib import Path

import pytest
from tokenizers import pre_tokenizers

from minfer_lib.errors import ArgumentError, MinferError, UnsupportedError
from minfer_lib.formats.gguf import read_gguf
from minfer_lib.text import ChatTemplate, Tokenizer

DATA = Path(__file__).parents[2] / "data"

CHATML = (
    "{% for message in messages %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SPECIAL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"]
HELLO = [{"role": "user", "content": "Hello"}]
ECHO = "{{ messages[0]['content'] }}"  # the least that a template must do


def tokenizer(**changes):
    tokens = sorted(pre_tokenizers.ByteLevel.alphabet()) + SPECIAL
    keys = {"model": "gpt2", "pre": "gpt-2", "tokens": tokens, "token_type": [1] * 256 + [3] * len(SPECIAL)}
    keys |= {"merges": [], "bos_token_id": 256, "eos_token_id": 257} | changes
    return Tokenizer({f"tokenizer.ggml.{key}": value for key, value in keys.items()})


def chat(source, **changes):
    return ChatTemplate(source, tokenizer(**changes))


def test_render_chatml():
    messages = [{"role": "system", "content": "Be brief."}, *HELLO]
    system = "<|im_start|>system\nBe brief.<|im_end|>\n"
    user = "<|im_start|>user\nHello<|im_end|>\n"
    assert chat(CHATML).render(messages) == system + user + "<|im_start|>assistant\n"
    assert chat(CHATML).render(messages, add_generation_prompt=False) == system + user


def test_the_template_is_found_in_the_metadata():
    assert ChatTemplate({"tokenizer.chat_template": CHATML}, tokenizer()).source == CHATML


def test_encode_reads_special_tokens():
    ids = chat(CHATML).encode(HELLO)
    assert ids[0] == 258 and ids.count(259) == 1
    assert tokenizer().decode(ids) == chat(CHATML).render(HELLO)


@pytest.mark.parametrize(
    "add_bos, written, count", [(True, True, 1), (True, False, 1), (False, True, 1), (False, False, 0)]
)
def test_bos_comes_once(add_bos, written, count):
    source = ("{{ bos_token }}" if written else "") + CHATML
    ids = chat(source, add_bos_token=add_bos).encode(HELLO)
    assert ids.count(256) == count and (count == 0 or ids[0] == 256)


@pytest.mark.parametrize(
    "source, expected",
    [
        ("{{ bos_token }}" + ECHO + "{{ eos_token }}", "<s>Hello</s>"),
        ("{{ messages | tojson }}", '[{"role": "user", "content": "Hello"}]'),
        ("{{ {'a': 'é<'} | tojson(indent=1) }}" + ECHO, '{\n "a": "é<"\n}Hello'),
        ("{{ {'b': 1, 'a': [2]} | tojson(separators=(',', ':'), sort_keys=true) }}" + ECHO, '{"a":[2],"b":1}Hello'),
        (ECHO + "{{ tools is none }}{{ documents is none }}{{ nothing is defined }}", "HelloTrueTrueFalse"),
        ("{% for i in [1, 2, 3] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}" + ECHO, "1Hello"),
        ("{% generation %}" + ECHO + "{% endgeneration %}", "Hello"),
        ("  {% if true %}\n" + ECHO + "\n  {% endif %}\n", "Hello\n"),  # trim_blocks and lstrip_blocks
        ("{{ '<b>' }}" + ECHO, "<b>Hello"),  # text, not HTML
    ],
)
def test_what_templates_rely_on(source, expected):
    assert chat(source).render(HELLO) == expected


# --- The ways in which families of models write a conversation ------------------------------------------------------

TALK = [("user", "Hi "), ("assistant", "<think>\nhm\n</think>\n\nHello"), ("user", "Bye")]
BRIEF = ("system", "Be brief.")

# A system turn of its own where there is none.
QWEN2 = """{% for m in messages %}
{% if loop.first and m['role'] != 'system' %}
{{ '<|im_start|>system\\nHelp.<|im_end|>\\n' }}{% endif %}
{{ '<|im_start|>' + m.role + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""

# Thoughts are kept after the last question only: a namespace, a list backwards, methods of a string, and a switch.
QWEN3 = """{%- set ns = namespace(searching=true, last=messages | length - 1) %}
{%- for m in messages[::-1] %}
    {%- set index = messages | length - 1 - loop.index0 %}
    {%- if ns.searching and m.role == 'user' and m.content is string and not m.content.startswith('<tool') %}
        {%- set ns.searching = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- if tools %}{{ tools | tojson }}{%- endif %}
{%- for m in messages %}
    {%- set content = m.content %}
    {%- if m.role == 'assistant' and '</think>' in content and loop.index0 < ns.last %}
        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
    {%- endif %}
    {{- '<|im_start|>' ~ m.role ~ '\\n' ~ content ~ '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}"""

# BOS at every question, the system turn inside the first, and turns that must alternate.
LLAMA2 = """{% if messages[0]['role'] == 'system' %}{% set rest, system = messages[1:], messages[0]['content'] %}
{% else %}{% set rest, system = messages, false %}{% endif %}
{% for m in rest %}
{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Turns must alternate') }}{% endif %}
{% if loop.index0 == 0 and system != false %}{% set said = '<<SYS>>' + system + '<</SYS>>' + m['content'] %}
{% else %}{% set said = m['content'] %}{% endif %}
{% if m['role'] == 'user' %}{{ bos_token + '[INST] ' + said.strip() + ' [/INST]' }}
{%- elif m['role'] == 'assistant' %}{{ ' ' + said.strip() + ' ' + eos_token }}{% endif %}
{% endfor %}"""

# The date, macros, and a default for what nobody passes.
LLAMA3 = """{{- bos_token }}
{%- if not day is defined %}{%- if strftime_now is defined %}{%- set day = strftime_now('%d %b %Y') %}
{%- else %}{%- set day = '26 Jul 2024' %}{%- endif %}{%- endif %}
{%- macro turn(role, text) %}{{- '<|im_start|>' + role + '\\n\\n' + text | trim + '<|im_end|>' }}{%- endmacro %}
{{- turn('system', 'It is ' + (day | length > 8) | string) }}
{%- for m in messages %}{{- turn(m.role, m.content) }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n\\n' }}{%- endif %}"""

GEMMA = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('No system turn') }}{% endif %}
{% for m in messages %}
{% if m['role'] == 'assistant' %}{% set role = 'model' %}{% else %}{% set role = m['role'] %}{% endif %}
{{ '<turn>' + role + '\\n' + m['content'] | trim + '</turn>\\n' }}{% endfor %}"""

FAMILIES = [
    (QWEN2, TALK[:1], "<|im_start|>system\nHelp.<|im_end|>\n<|im_start|>user\nHi <|im_end|>\n<|im_start|>assistant\n"),
    (
        QWEN2,
        [BRIEF, *TALK[:1]],
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi <|im_end|>\n<|im_start|>assistant\n",
    ),
    (
        QWEN3,
        TALK,
        "<|im_start|>user\nHi <|im_end|>\n<|im_start|>assistant\nHello<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n"
        "<|im_start|>assistant\n",
    ),
    (LLAMA2, TALK[:1], "<s>[INST] Hi [/INST]"),
    (
        LLAMA2,
        [BRIEF, ("user", "Hi"), ("assistant", "Yo"), ("user", "Bye")],
        "<s>[INST] <<SYS>>Be brief.<</SYS>>Hi [/INST] Yo </s><s>[INST] Bye [/INST]",
    ),
    (
        LLAMA3,
        TALK[:1],
        "<s><|im_start|>system\n\nIt is True<|im_end|><|im_start|>user\n\nHi<|im_end|><|im_start|>assistant\n\n",
    ),
    (GEMMA, [("user", "Hi"), ("assistant", "Yo")], "<s><turn>user\nHi</turn>\n<turn>model\nYo</turn>\n"),
]


@pytest.mark.parametrize("source, talk, expected", FAMILIES)
def test_templates_in_the_manner_of_known_models(source, talk, expected):
    messages = [{"role": role, "content": content} for role, content in talk]
    template = chat(source, add_bos_token=True)
    assert template.render(messages) == expected
    ids = template.encode(messages)
    assert ids[0] == 256 and ids[1] != 256, "BOS once, whoever writes it"


@pytest.mark.parametrize("source, talk, reason", [(LLAMA2, TALK[1:], "alternate"), (GEMMA, [BRIEF], "No system turn")])
def test_templates_that_refuse_a_conversation(source, talk, reason):
    with pytest.raises(ArgumentError, match=reason):
        chat(source).render([{"role": role, "content": content} for role, content in talk])


def test_strftime_now():
    assert re.fullmatch(r"\d{4}Hello", chat("{{ strftime_now('%Y') }}" + ECHO).render(HELLO))


@pytest.mark.parametrize("source", [{}, {"tokenizer.chat_template": ""}, {"tokenizer.chat_template": 7}, "", " \n"])
def test_a_missing_template_says_what_to_do(source):
    with pytest.raises(UnsupportedError, match="generate"):
        chat(source)


@pytest.mark.parametrize(
    "source, reason",
    [
        ("{% for message in messages %}", "TemplateSyntaxError"),
        ("{{ nonsense('x') }}", "nonsense"),
        ("{{ messages[5]['content'] }}", "UndefinedError"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}", "RecursionError"),
        ("{{ raise_exception('System message first') }}", "System message first"),
        ("{% include 'other' %}", "no loader"),
        ("a text without the message", "leaves out"),
    ],
)
def test_a_template_that_cannot_work_is_an_error_at_once(source, reason):
    with pytest.raises(UnsupportedError, match=reason):
        chat(source)


ATTACKS = [
    "{{ ''.__class__ }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ ''['__class__'] }}",
    "{{ '' | attr('__class__') | string }}",
    "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "{{ raise_exception.__globals__ }}",
    "{{ strftime_now.__globals__['json'] }}",
    "{{ '{0.__class__}'.format(1) }}",
    "{{ messages.append(1) }}",
    "{{ messages[0].update(role='x') }}",
    "{% for i in range(1000000000) %}{% endfor %}",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_malicious_templates_are_refused(attack):
    with pytest.raises(UnsupportedError):
        chat(attack + ECHO)


@pytest.mark.parametrize("attack", ATTACKS)
def test_malicious_templates_that_behave_in_the_trial_are_refused_later(attack):
    template = chat("{% if messages[0]['content'] == 'now' %}" + attack + "{% endif %}" + ECHO)
    with pytest.raises(MinferError):
        template.render([{"role": "user", "content": "now"}])


def test_messages_that_the_template_refuses():
    template = chat("{% if messages | length > 1 %}{{ raise_exception('Roles must alternate') }}{% endif %}" + ECHO)
    with pytest.raises(ArgumentError, match="Roles must alternate"):
        template.render(HELLO * 2)


@pytest.mark.parametrize(
    "messages", [[], "Hello", {"role": "user"}, [{"role": "user"}], [{"role": 1, "content": ""}], [3], None]
)
def test_messages_of_the_wrong_shape(messages):
    with pytest.raises(ArgumentError, match="messages"):
        chat(CHATML).encode(messages)


def test_the_real_models_template(smollm2):
    metadata = read_gguf(smollm2).metadata
    cases = json.loads((DATA / "golden" / "smollm2_135m_q4_1.json").read_text())
    golden = next(case for case in cases if case["prompt"].startswith("<|im_start|>"))
    question = golden["prompt"].split("user\n")[1].split("<|im_end|>")[0]
    template = ChatTemplate(metadata, Tokenizer(metadata))
    messages = [{"role": "user", "content": question}]
    assert template.render(messages) == golden["prompt"], "the template adds the system turn by itself"
    assert template.encode(messages) == golden["ids"]
