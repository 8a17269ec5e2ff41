"""How deep what a scenario says may be nested."""

import pytest

from edgebed.core.errors import ScenarioError
from edgebed.scenario.load import load_scenario


@pytest.mark.parametrize("form", ["brackets", "block", "dashes", "both", "python"])
@pytest.mark.parametrize("levels", [64, 65, 66, 99, 100, 101, 150])
def test_one_limit_holds_for_what_is_nested_however_it_is_written(tmp_path, monkeypatch, good, form, levels):
    """And where it is passed, the text says that it is: nothing is said of aliases where there is none."""
    monkeypatch.chdir(tmp_path)
    inside = levels - 1  # the file is a mapping itself
    half = inside // 2
    texts = {
        "brackets": "[" * inside + "1" + "]" * inside,
        "block": "".join(f"\n{' ' * (k + 1)}a:" for k in range(inside)) + " 1",
        "dashes": "\n  " + "- " * inside + "1",
        "both": "".join(f"\n{' ' * (k + 1)}a:" for k in range(half))
        + " "
        + "[" * (inside - half)
        + "]" * (inside - half),
        "python": "",
    }
    value = 1
    for _ in range(inside):
        value = [value]
    (tmp_path / "s.yaml").write_text(f"{good}what: {texts[form]}\n")

    with pytest.raises(ScenarioError) as caught:
        load_scenario({"what": value} if form == "python" else "s.yaml")

    assert ("more than 64 lists or mappings in each other; a scenario is 6 deep." in str(caught.value)) == (levels > 64)
    assert "alias" not in str(caught.value)
