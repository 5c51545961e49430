"""Folders made by other programs: texts begin and end as their files specify, even if the files disagree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import AddedToken, Tokenizer

from skillpress.core.engine import Sampling
from skillpress.core.errors import UserError
from skillpress.core.parsed_action import Parser
from skillpress.models.engines.generate import generate
from skillpress.models.engines.local.engine import LocalEngine
from skillpress.models.policy import Policy, PolicyError, load_policy, save_policy
from skillpress.models.policy.agreement import check_family
from skillpress.rollouts.agents.parsing import plain, tagged
from skillpress.rollouts.agents.structured_parsing import json_object, xml
from tests.support.models.folders import (
    BOS,
    CHATML,
    DATED,
    END,
    EOS,
    IN_PARTS,
    PAD,
    SPECIAL,
    START,
    THINK,
    THINK_END,
    THINKING,
    gemma3,
    llama,
    tokenizer_with,
    write_folder,
)

ENDS = {EOS: 1, END: 4}


def edit(file: Path, **changes: Any) -> None:
    """Change the contents of a JSON file."""
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def reloaded(policy: Policy, folder: Path) -> Policy:
    save_policy(policy, folder)
    return load_policy(folder)


# Where texts begin


@pytest.mark.parametrize(
    ("text_begins", "said", "begin"),
    [
        (True, {}, (0,)),
        (False, {}, ()),
        (False, {"add_bos_token": True}, (0,)),  # as transformers 4 had it
        (True, {"add_bos_token": True}, (0,)),
        (True, {"add_bos_token": False}, ()),
    ],
)
def test_a_base_models_prompt_begins_with_its_bos_once_if_its_folder_says_so(
    tmp_path: Path, text_begins: bool, said: dict[str, Any], begin: tuple[int, ...]
) -> None:
    source = write_folder(tmp_path / "base", backend=tokenizer_with(text_begins=text_begins), tokenizer=said)
    for policy in (loaded := load_policy(source), reloaded(loaded, tmp_path / "saved")):
        prompts = policy.encode(["2 + 2", "x"])
        assert [prompt[: len(begin)] for prompt in prompts] == [begin, begin]
        assert [prompt.count(0) for prompt in prompts] == [len(begin)] * 2
        (longer,) = policy.extend([prompts[0]], ["x"])
        assert longer == prompts[0] + prompts[1][len(begin) :]
        assert policy.encode_response("4").count(0) == 0


def test_a_template_that_writes_the_bos_has_it_once(tmp_path: Path) -> None:
    template = "{{ bos_token }}" + CHATML
    backend = tokenizer_with(text_begins=True)
    policy = load_policy(write_folder(tmp_path / "chat", backend=backend, template=template))
    (prompt,) = policy.encode(["2 + 2"])
    assert prompt[0] == 0 and prompt.count(0) == 1


# Where responses end


def says_always(policy: Policy, token: int) -> Policy:
    """A policy that writes only this token."""
    head = policy.model.get_output_embeddings()
    bias = torch.zeros(len(head.weight))
    bias[token] = 100.0
    with torch.no_grad():
        head.weight.zero_()
    head.bias = torch.nn.Parameter(bias)
    return policy


@pytest.mark.parametrize(
    ("generation", "eos", "template", "ends", "closing"),
    [
        (
            {"eos_token_id": 1},
            EOS,
            CHATML,
            {1, 4},
            4,
        ),  # tuned for chats, which only the template shows
        ({"eos_token_id": 1}, END, None, {1, 4}, 4),
        ({"eos_token_id": [4]}, EOS, None, {1, 4}, 1),
        ({"eos_token_id": [4, 1]}, EOS, CHATML, {1, 4}, 4),
        ({"eos_token_id": 1}, EOS, None, {1}, 1),
        ({}, EOS, None, {1}, 1),
        ({"eos_token_id": 2}, None, CHATML, {1, 2, 4}, 4),  # 1 by config.json
    ],
)
def test_a_response_ends_with_any_end_that_a_file_names_and_demonstrations_with_the_templates(
    tmp_path: Path,
    generation: dict[str, Any],
    eos: str | None,
    template: str | None,
    ends: set[int],
    closing: int,
) -> None:
    source = write_folder(
        tmp_path / "source", template=template, tokenizer={"eos_token": eos}, generation=generation or None
    )
    for policy in (loaded := load_policy(source), reloaded(loaded, tmp_path / "saved")):
        assert policy.stop_token_ids == ends
        assert policy.encode_response("yes")[-1] == closing
    for end in ends:
        engine = LocalEngine(says_always(loaded, end))
        (said,) = generate(engine, loaded.encode(["Is it?"]), Sampling(max_new_tokens=3), [0])
        assert said.token_ids == (end,) and said.finish_reason == "stop"


def test_an_end_that_is_no_special_token_ends_responses_and_is_not_read(tmp_path: Path) -> None:
    backend = tokenizer_with((BOS, EOS))
    backend.add_tokens([AddedToken(word, special=False, normalized=False) for word in ("<|turn|>", "  ")])
    template = CHATML.replace("<|im_end|>", "  <|turn|>")
    policy = load_policy(write_folder(tmp_path / "source", backend=backend, template=template))
    turn = policy.tokenizer.convert_tokens_to_ids("<|turn|>")
    assert policy.stop_token_ids == {1, turn} and policy.encode_response("up")[-1] == turn
    assert policy.decode(policy.encode_response("up")) == "up"


def test_a_prompt_that_goes_on_holds_one_end_whichever_the_response_had(tmp_path: Path) -> None:
    policy = load_policy(write_folder(tmp_path / "source", template=CHATML))
    (prompt,) = policy.encode(["7"])
    said = policy.encode_response("up")[:-1]
    for end in ENDS.values():
        (longer,) = policy.extend([(*prompt, *said, end)], ["8"])
        assert longer[: len(prompt) + 3] == (*prompt, *said, end)
        behind = policy.tokenizer.decode(longer[len(prompt) + 3 :])
        assert behind == f"\n{START}user\n8{END}\n{START}assistant\n"


def test_a_folder_whose_responses_cannot_end_is_refused(tmp_path: Path) -> None:
    config = llama(eos_token_id=None)
    source = write_folder(
        tmp_path / "endless", config, tokenizer={"eos_token": None}, generation={"do_sample": True}
    )
    with pytest.raises(PolicyError, match=r"endless: no token ends a response"):
        load_policy(source)
    beyond = write_folder(tmp_path / "beyond", generation={"eos_token_id": 280})
    with pytest.raises(PolicyError, match=r"beyond: .* token 280, but the model has ids 0 to 279"):
        load_policy(beyond)


@pytest.mark.parametrize("generation", [{"do_sample": True}, {"eos_token_id": 1}, None])
def test_ends_that_the_configuration_alone_names_are_taken_where_they_are_no_words(
    tmp_path: Path, generation: dict[str, Any] | None
) -> None:
    source = write_folder(tmp_path / "source", generation=generation)
    if generation is None:
        (source / "generation_config.json").unlink()
    edit(source / "config.json", eos_token_id=[1, 4] if generation is None else [1, 4, 77])
    for policy in (loaded := load_policy(source), reloaded(loaded, tmp_path / "saved")):
        assert policy.stop_token_ids == {1, 4}


@pytest.mark.parametrize("named", ["1", 1.0, ["1", None]])
def test_an_end_that_is_no_token_is_refused(tmp_path: Path, named: Any) -> None:
    source = write_folder(tmp_path / "odd", generation={"eos_token_id": named})
    with pytest.raises(PolicyError, match=r"odd: eos_token_id in generation_config.json .* number of a"):
        load_policy(source)


# Chat templates

FORMS: list[tuple[Parser, str]] = [
    (tagged, "<think>warm</think><action>go up</action>"),
    (json_object, '{"thought": "warm", "action": "go up"}'),
    (xml, "<step><thought>warm</thought><action>go up</action></step>"),
    (plain, "go up"),
]


@pytest.mark.parametrize(("parse", "answer"), FORMS, ids=["tagged", "json", "xml", "plain"])
@pytest.mark.parametrize("special", [SPECIAL, (*SPECIAL, THINK, THINK_END)], ids=["text", "tokens"])
@pytest.mark.parametrize("template", [CHATML, THINKING], ids=["asks", "opens"])
def test_responses_are_read_from_where_the_prompt_ends(
    tmp_path: Path, template: str, special: tuple[str, ...], parse: Parser, answer: str
) -> None:
    source = write_folder(tmp_path / "model", backend=tokenizer_with(special), template=template)
    policy = load_policy(source)
    (prompt,) = policy.encode(["Where to?"])
    response = policy.encode_response(answer)
    read = parse(policy.decode(response))
    assert (read.action, read.invalid) == ("go up", None)
    assert read.thought == ("" if parse is plain else "warm")
    written = policy.tokenizer.decode(prompt + response)
    assert written.count(THINK) == (template == THINKING or parse is tagged) == written.count(THINK_END)
    assert (prompt + response).count(4) == 2  # the prompt's end and the response's


def test_a_thought_that_the_prompt_opened_and_the_response_never_closes_is_no_action(tmp_path: Path) -> None:
    policy = load_policy(write_folder(tmp_path / "model", template=THINKING))
    assert policy.encode_beginning(THINK) == ()
    cut = policy.decode(policy.encode_beginning("<think>go up, or {1: 2}? <step>"))
    assert [parse(cut).invalid for parse, _ in FORMS] == ["missing_thought", *["unclosed"] * 3]


def test_tags_that_are_special_tokens_are_read_and_other_special_tokens_are_not(tmp_path: Path) -> None:
    tags = (THINK, THINK_END, "<tool_call>", "</tool_call>", "<file_sep>")
    policy = load_policy(write_folder(tmp_path / "model", backend=tokenizer_with((*SPECIAL, *tags))))
    said = f"{THINK}so{THINK_END}<tool_call>up</tool_call>"
    ids = policy.encode_response(f"{START}<file_sep>{said}{BOS}")
    assert policy.decode(ids) == said and reloaded(policy, tmp_path / "saved").decode(ids) == said


def test_a_template_that_wants_parts_gets_them(tmp_path: Path) -> None:
    text = load_policy(write_folder(tmp_path / "text", template=CHATML))
    parts = load_policy(write_folder(tmp_path / "parts", template=IN_PARTS))
    assert parts.encode(["2 + 2"]) == text.encode(["2 + 2"])
    assert parts.extend([(5, 6)], ["go on"]) == text.extend([(5, 6)], ["go on"])
    assert parts.encode_response("4") == text.encode_response("4")


@pytest.mark.parametrize("file", ["chat_template.json", "processor_config.json"])
@pytest.mark.parametrize(
    "said", [IN_PARTS, [{"name": "default", "template": IN_PARTS}]], ids=["one", "named"]
)
def test_a_template_that_stands_in_a_file_for_processors_is_found(
    tmp_path: Path, file: str, said: Any
) -> None:
    source = write_folder(tmp_path / "processor")
    (source / file).write_text(json.dumps({"chat_template": said}))
    text = load_policy(write_folder(tmp_path / "text", template=CHATML))
    for policy in (loaded := load_policy(source), reloaded(loaded, tmp_path / "saved")):
        assert policy.encode(["2 + 2"]) == text.encode(["2 + 2"])


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ '<|im_start|>assistant\n' }}", "drops what the user says"),
        ("{% for m in messages %}{{ m.text }}{% endfor %}", "drops what the user says"),
        ("{{ raise_exception('system first') }}", "cannot be rendered: system first"),
        ("{% for m in messages %}", "cannot be rendered"),
        ("{{ 1 / 0 }}", "cannot be rendered: division by zero"),
        ("{% for tool in tools %}{{ tool }}{% endfor %}", "cannot be rendered: 'NoneType'"),
        (
            [{"name": "tools", "template": CHATML}],
            "none of its chat templates .tools. is the default; rename the one",
        ),
    ],
)
def test_a_template_that_shows_no_prompt_is_refused(tmp_path: Path, template: Any, reason: str) -> None:
    source = write_folder(tmp_path / "mute", template=template)
    with pytest.raises(PolicyError, match=f"mute.*{reason}"):
        load_policy(source)


def test_a_template_that_hides_earlier_responses_is_refused_where_prompts_go_on(tmp_path: Path) -> None:
    hiding = CHATML.replace("{{ '<", "{{ '' if message.role == 'assistant' else '<", 1)
    policy = load_policy(write_folder(tmp_path / "hiding", template=hiding))
    with pytest.raises(PolicyError, match="does not show earlier responses"):
        policy.extend([(5, 6)], ["go on"])


def test_a_template_that_takes_one_turn_is_refused_where_prompts_go_on(tmp_path: Path) -> None:
    template = "{% if messages | length > 1 %}{{ raise_exception('one turn') }}{% endif %}" + CHATML
    policy = load_policy(write_folder(tmp_path / "single", template=template))
    assert policy.encode(["Where to?"])
    with pytest.raises(PolicyError, match=r"takes no second turn \(one turn\)"):
        policy.extend([(5, 6)], ["go on"])


def test_a_template_that_writes_the_date_writes_the_same_one_every_day(tmp_path: Path) -> None:
    policy = load_policy(write_folder(tmp_path / "dated", template=DATED))
    (prompt,) = policy.encode(["What day is it?"])
    assert "Today is 26 Jul 2024" in policy.tokenizer.decode(prompt)


# Weights and configurations


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"),
        ("tokenizer.json", '{"version": "1.0", "added_tokens": [], "model": {"type": "New"}}'),
        ("tokenizer.json", "{"),
        ("tokenizer_config.json", "[]"),
        ("generation_config.json", "{"),
        ("generation_config.json", "[]"),
        ("chat_template.json", "{"),
        ("processor_config.json", '{"chat_template": [{"name": "default"}]}'),
        ("config.json", "{"),
    ],
)
def test_a_folder_with_a_file_that_cannot_be_read_is_refused(tmp_path: Path, file: str, said: str) -> None:
    source = write_folder(tmp_path / "broken")
    (source / file).write_text(said)
    with pytest.raises(UserError, match="broken"):
        load_policy(source)


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    (write_folder(tmp_path / "mute") / "tokenizer.json").unlink()
    with pytest.raises(PolicyError, match=r"mute: .*it has no tokenizer\.json"):
        load_policy(tmp_path / "mute")


@pytest.mark.parametrize(
    "changes", [{"num_attention_heads": 0}, {"pad_token_id": 280}, {"hidden_act": "none"}]
)
def test_a_configuration_that_makes_no_model_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    source = write_folder(tmp_path / "odd")
    edit(source / "config.json", **changes)
    with pytest.raises(PolicyError, match="odd: not a Hugging Face causal language model"):
        load_policy(source)


def test_an_adapter_is_no_model_and_neither_is_a_file(tmp_path: Path) -> None:
    source = write_folder(tmp_path / "tuned")
    with pytest.raises(PolicyError, match=r"config.json: is a file; name a folder"):
        load_policy(source / "config.json")
    (source / "adapter_config.json").write_text('{"peft_type": "LORA", "base_model_name_or_path": "base"}')
    with pytest.raises(PolicyError, match=r"tuned: .* is an adapter, not a full model; merge it"):
        load_policy(source)


@pytest.mark.parametrize("kind", ["llama", "unheard-of"])
def test_no_code_of_a_folder_is_run(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_folder(tmp_path / "coded")
    (source / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Own: pass\n")
    own = {"AutoConfig": "own.Own", "AutoModelForCausalLM": "own.Own"}
    edit(source / "config.json", model_type=kind, auto_map=own)
    edit(source / "tokenizer_config.json", auto_map={"AutoTokenizer": ["own.Own", "own.Own"]})
    if kind == "llama":  # transformers has code of its own for it
        assert load_policy(source).stop_token_ids == {1}
    else:
        with pytest.raises(PolicyError, match=r"coded: .* a folder's code is never run"):
            load_policy(source)
    assert not (tmp_path / "ran").exists() and "[y/N]" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("backend", "vocabulary", "template"),
    [
        (tokenizer_with(), 100, None),
        (tokenizer_with((BOS, EOS, PAD)), 259, CHATML),  # its template's tokens were added, and no rows
    ],
)
def test_a_tokenizer_that_knows_more_than_its_model_is_refused(
    tmp_path: Path, backend: Tokenizer, vocabulary: int, template: str | None
) -> None:
    added = {"additional_special_tokens": [START, END]} if template else {"pad_token": EOS}
    config = llama(vocab_size=vocabulary)
    source = write_folder(tmp_path / "small", config, backend, template, added)
    with pytest.raises(PolicyError, match=rf"small: .* the model has ids 0 to {vocabulary - 1}"):
        load_policy(source)


def test_padding_that_the_model_has_no_row_for_is_never_embedded(tmp_path: Path) -> None:
    added = {"pad_token": "[PAD]"}
    policy = load_policy(write_folder(tmp_path / "padded", llama(vocab_size=261), tokenizer=added))
    assert policy.tokenizer.pad_token_id == 261
    prompts = policy.encode(["2 + 2", "much longer"])
    both = generate(LocalEngine(policy), prompts, Sampling(max_new_tokens=3), [1, 2])
    assert [len(each.token_ids) for each in both] == [3, 3]


def test_a_multimodal_model_plays_by_its_language_model(tmp_path: Path) -> None:
    source = write_folder(tmp_path / "gemma", gemma3(), template=IN_PARTS)
    policy = load_policy(source)
    assert (policy.context_length, policy.vocabulary) == (2048, 280)
    check_family(policy.model)
    prompts = policy.encode(["What do you see?", "Where?"])
    first = generate(LocalEngine(policy), prompts, Sampling(max_new_tokens=4), [1, 2])
    again = reloaded(policy, tmp_path / "saved")
    assert generate(LocalEngine(again), prompts, Sampling(max_new_tokens=4), [1, 2]) == first


def test_a_folder_without_some_weights_is_refused(tmp_path: Path) -> None:
    source = write_folder(tmp_path / "half")
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.raises(
        PolicyError, match=r"half: holds no weights for model\.layers\.2\..* and others of config"
    ):
        load_policy(source)
    (source / "config.json").write_text(json.dumps({**config, "intermediate_size": 64}))
    with pytest.raises(PolicyError, match=r"half: holds weights of another shape for model\.layers\.0\.mlp"):
        load_policy(source)


@pytest.mark.parametrize(
    ("generation", "kept"),
    [
        ({"temperature": 0.6, "top_p": 0.9}, {"temperature": 0.6, "top_p": 0.9, "do_sample": True}),
        ({"temperature": 0.6, "do_sample": False, "top_k": 20}, {"temperature": 0.6, "do_sample": True}),
        ({"temperature": 0.0}, {}),
        ({"pad_token_id": -1}, {}),
        ({"early_stopping": True, "length_penalty": 2.0}, {}),
        ({"temperature": 0.7, "do_sample": True}, {"temperature": 0.7, "do_sample": True}),
    ],
)
def test_generation_settings_that_transformers_refuses_are_mended_on_saving(
    tmp_path: Path, generation: dict[str, Any], kept: dict[str, Any]
) -> None:
    source = write_folder(tmp_path / "source", generation={"eos_token_id": [1, 4], **generation})
    again = reloaded(load_policy(source), tmp_path / "saved")
    assert again.stop_token_ids == {1, 4}
    written = json.loads((tmp_path / "saved" / "generation_config.json").read_text())
    assert {name: written[name] for name in kept} == kept


def test_generation_settings_in_the_models_configuration_hinder_no_saving(tmp_path: Path) -> None:
    source = write_folder(tmp_path / "source")
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps({**config, "temperature": 0.7, "max_length": 20}))
    assert reloaded(load_policy(source), tmp_path / "saved").stop_token_ids == {1}
