"""Finding JSON objects in a reply."""

from jurybox.judging.flow import Defect
from jurybox.judging.formats.json_format import find_objects


def test_e7_a_key_that_is_given_twice_is_a_defect_however_it_is_written() -> None:
    (found,) = find_objects('{"scores": {"a": 5, "a" : 1}}')
    assert found == Defect('the key "a" is given twice.')
