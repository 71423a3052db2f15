from jurybox.rubric.template import PLACEHOLDERS, Template

PARTS = {
    "task": "T",
    "reference": "R",
    "context": "C",
    "messages": "M",
    "response": "A",
    "response_b": "B",
}


def test_every_placeholder_is_filled_in_both_forms() -> None:
    for name, part in PLACEHOLDERS.items():
        assert Template(text=f"<{{{name}}}>").fill(PARTS) == f"<{PARTS[part]}>"
        assert Template(text=f"<{{{{{name}}}}}>").fill(PARTS) == f"<{PARTS[part]}>"


def test_where_there_is_a_double_form_the_single_one_is_plain_text() -> None:
    template = Template(text='{{task}} {response} {"score": 1}')
    assert template.fill(PARTS) == 'T {response} {"score": 1}'
    assert [name for name, _ in template.placeholders()] == ["task"]


def test_json_is_plain_text_in_a_template_of_the_single_form() -> None:
    assert Template(text='{response} {"a": {}} { task }').fill(PARTS) == 'A {"a": {}} { task }'


def test_c14_what_is_filled_in_is_never_filled_itself() -> None:
    parts = PARTS | {"task": "{{response}}", "response": "{{task}} \\g<0> \\1"}
    assert Template(text="{{task}}|{{response}}").fill(parts) == "{{response}}|{{task}} \\g<0> \\1"
