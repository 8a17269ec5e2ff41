"""Data sets of the UCI repository: read in both forms from small stand-ins, and from the real files where they are."""

import csv
from pathlib import Path

import numpy as np
import pytest

from edgebed.core.errors import ScenarioError
from edgebed.learning.data_sets.data_set import DataSet
from edgebed.learning.data_sets.registry import data_directory, load_data
from edgebed.learning.data_sets.uci import har, heart, parkinsons
from edgebed.planning.division import hold_out
from edgebed.scenario.choices import HeldOut

NAMES = ("har", "heart", "parkinsons")
READERS = {"har": har, "heart": heart, "parkinsons": parkinsons}
PATIENTS = 20
"""Of each stand-in hospital."""


def patient(hospital: int, number: int) -> list[str]:
    """The findings of one, of whom the second hospital knows no cholesterol."""
    chol = "" if hospital == 1 else str(200 + number)
    cells = [str(30 + number), "1", str(1 + number % 4), "120", chol, "0", "0", "150", "0", "1.5", "2", "", "3"]
    return [*cells, str(number % 5)]


def put_heart(folder: Path, *, together: bool) -> None:
    """Write the patients in one of the two forms."""
    folder.mkdir(parents=True)
    rows = {name: [patient(k, number) for number in range(PATIENTS)] for k, name in enumerate(heart.HOSPITALS)}
    if together:
        with (folder / heart.TOGETHER).open("w", newline="") as file:
            csv.writer(file).writerows([["hospital", *heart.COLUMNS]])
            csv.writer(file).writerows([name, *cells] for name, of in rows.items() for cells in of)
    else:
        for name, of in rows.items():
            lines = "".join(",".join(cell or "?" for cell in cells) + "\n" for cells in of)
            (folder / f"processed.{name}.data").write_text(lines)


def windows_of(people: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Twenty windows of each activity of each person, which count upwards in their first feature."""
    y = np.tile(np.repeat(np.arange(6), 20), len(people))
    x = np.zeros((len(y), har.FEATURES), np.float32)
    x[:, 0] = np.arange(len(y)) / 1000
    return x, y, np.repeat(people, 120)


def put_har(folder: Path, *, packed: bool) -> None:
    """Write three people: two of them are of the published training part, which the packed form has alone."""
    folder.mkdir(parents=True)
    x, y, people = windows_of((1, 3))
    if packed:
        client = np.searchsorted(har.TRAINING_PEOPLE, people).astype(np.uint8)
        np.savez(folder / har.PACKED, x=x, y=y.astype(np.uint8), client=client)
        return
    for part, arrays in (("train", (x, y + 1, people)), ("test", (windows_of((2,))[0], y[:120] + 1, [2] * 120))):
        (folder / har.PUBLISHED / part).mkdir(parents=True)
        for what, array in zip(("X", "y", "subject"), arrays, strict=True):
            np.savetxt(folder / har.PUBLISHED / part / f"{what}_{part}.txt", array, fmt="%g")


def put_parkinsons(folder: Path) -> None:
    """Write two people of ten sessions, with three recordings each, in the order of no clock."""
    folder.mkdir(parents=True)
    rows = [
        [person, 60 + person, 0, 7 * session + recording / 1000, session, 2 * session + person, *([0.1 * session] * 16)]
        for person in (1, 2) for recording in range(3) for session in range(10)
    ]  # fmt: skip
    with (folder / parkinsons.FILE).open("w", newline="") as file:
        csv.writer(file).writerows([parkinsons.COLUMNS, *rows])


def put(name: str, folder: Path) -> Path:
    """Write the stand-ins of a data set in the publishers' form; their folder."""
    {
        "har": lambda: put_har(folder, packed=False),
        "heart": lambda: put_heart(folder, together=False),
        "parkinsons": lambda: put_parkinsons(folder),
    }[name]()
    return folder


def real(name: str) -> DataSet:
    """The data set of the real files; skips where they are not."""
    if READERS[name].find((data_directory() / name, data_directory())) is None:
        pytest.skip(f"no {name} in {data_directory()}; set EDGEBED_DATA_DIR to the folder that has it")
    return load_data(name, seed=0)


def counts(data: DataSet) -> list[dict[str, int]]:
    """Examples by client, of each part."""
    return [
        dict(zip(data.client_names, np.bincount(part.clients, minlength=len(data.client_names)).tolist(), strict=True))
        for part in data.parts.values()
    ]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("below", [True, False])
def test_files_are_found_in_a_folder_of_their_own_or_beside_others(tmp_path: Path, name: str, below: bool):
    """Each client is on all parts."""
    put(name, tmp_path / (f"data/{name}" if below else "data"))

    data = load_data(name, seed=0, data_dir=tmp_path / "data")

    assert all(min(part.values()) > 0 for part in counts(data))


@pytest.mark.parametrize(("name", "page"), [("har", "C54S4K"), ("heart", "C52P4X"), ("parkinsons", "C5ZS3N")])
def test_missing_files_are_named_with_where_they_come_from(tmp_path: Path, name: str, page: str):
    """And where to put them; nothing is downloaded."""
    with pytest.raises(ScenarioError, match=rf"data: {name}: found no .*{page}.*EDGEBED_DATA_DIR") as caught:
        load_data(name, seed=0, data_dir=tmp_path)

    assert f"Put it into {tmp_path / name}" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_in_a_container_the_remedy_is_one_of_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its own folders mean nothing there."""
    monkeypatch.setenv("EDGEBED_CONTAINER", "1")
    with pytest.raises(ScenarioError, match=r"run with EDGEBED_DATA_DIR=\S+ docker compose up"):
        load_data("heart", seed=0, data_dir=tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_divides_nothing(tmp_path: Path, name: str):
    """Parts are the same for each, so that results of seeds can be compared."""
    put(name, tmp_path / "data")
    first, second = (load_data(name, seed=seed, data_dir=tmp_path / "data") for seed in (1, 2))

    for which, part in first.parts.items():
        assert np.array_equal(part.inputs[""], second.parts[which].inputs[""])


@pytest.mark.parametrize("name", NAMES)
def test_without_validation_its_examples_are_trained_with(tmp_path: Path, name: str):
    """The test part stays as it is."""
    put(name, tmp_path / "data")
    whole, without = (
        load_data(name, seed=0, data_dir=tmp_path / "data", settings=settings) for settings in ({}, {"validation": 0.0})
    )

    assert without.validation is None
    assert len(without.train) > len(whole.train)
    assert np.array_equal(whole.test.targets[""].shape, without.test.targets[""].shape)


def test_another_division_has_other_patients_of_the_same_number(tmp_path: Path):
    """And the same ones in all, in the proportions of each hospital and answer."""
    put_heart(tmp_path / "data", together=False)
    first, second = (
        load_data("heart", seed=0, data_dir=tmp_path / "data", settings={"division": number}) for number in (1, 2)
    )

    assert counts(first) == counts(second)
    assert np.bincount(first.test.targets[""]).tolist() == np.bincount(second.test.targets[""]).tolist()
    assert not np.array_equal(first.test.inputs[""], second.test.inputs[""])
    with pytest.raises(ScenarioError, match="division: -1 is below 0"):
        load_data("heart", seed=0, data_dir=tmp_path / "data", settings={"division": -1})


def test_both_forms_of_heart_are_the_same(tmp_path: Path):
    """To the bit; the note says which it is."""
    forms = []
    for together in (True, False):
        put_heart(tmp_path / str(together), together=together)
        forms.append(load_data("heart", seed=0, data_dir=tmp_path / str(together)))

    for which, part in forms[0].parts.items():
        assert np.array_equal(part.inputs[""], forms[1].parts[which].inputs[""])
        assert np.array_equal(part.clients, forms[1].parts[which].clients)
    assert [("heart.csv" in form.note) for form in forms] == [True, False]


def test_what_is_missing_is_the_mean_and_is_said(tmp_path: Path):
    """No cholesterol in one hospital; `ca` nowhere; kinds are ones of their own."""
    put_heart(tmp_path / "data", together=False)
    data = load_data("heart", seed=0, data_dir=tmp_path / "data")
    x, is_second = data.train.inputs[""], data.train.clients == 1
    chol, ca = heart.NUMBERS.index("chol"), heart.NUMBERS.index("ca")
    missing = [len(heart.NUMBERS) + k for k in range(len(heart.NUMBERS) - len(heart.ALWAYS_KNOWN))]

    assert x.shape[1] == 29
    assert (x[is_second][:, chol] == 0).all()
    assert (x[:, ca] == 0).all()
    assert x[is_second][:, missing].sum(axis=1).tolist() == [2.0] * is_second.sum()
    assert x[~is_second][:, missing].sum(axis=1).tolist() == [1.0] * (~is_second).sum()
    assert (x[:, 16:20].sum(axis=1) == 1).all()
    assert data.train.targets[""].max() == 1


@pytest.mark.parametrize("name", ["heart", "parkinsons"])
def test_statistics_are_those_of_training_alone(tmp_path: Path, name: str):
    """A test example that changes changes no other example."""
    columns, change = {"heart": (heart.COLUMNS, "age"), "parkinsons": (parkinsons.COLUMNS, "HNR")}[name]
    put(name, tmp_path / "data")
    file = tmp_path / "data" / {"heart": "processed.va.data", "parkinsons": parkinsons.FILE}[name]
    lines = [line.split(",") for line in file.read_text().splitlines()]
    before = load_data(name, seed=0, data_dir=tmp_path / "data")
    place = columns.index(change)
    found = 0
    for line in lines[name == "parkinsons" :]:
        kept, line[place] = line[place], "10000"
        file.write_text("".join(",".join(cells) + "\n" for cells in lines))
        after = load_data(name, seed=0, data_dir=tmp_path / "data")
        line[place] = kept
        same = {
            which: np.array_equal(part.inputs[""], after.parts[which].inputs[""])
            for which, part in before.parts.items()
        }
        assert same["train"] or not (same["validation"] and same["test"]), "of training: all are scaled by it"
        found += not same["test"] and same["train"] and same["validation"]

    assert found == np.bincount(before.test.clients)[-1] * (1 if name == "heart" else 2)


@pytest.mark.parametrize("name", ["heart", "parkinsons"])
def test_statistics_are_without_who_is_held_out(tmp_path: Path, name: str):
    """Whatever the values of a client who is held out are, those of all others and their mean are the same."""
    columns, client, person = {
        "heart": (heart.COLUMNS, "va", ""), "parkinsons": (parkinsons.COLUMNS, "2", "2,")
    }[name]  # fmt: skip
    file = put(name, tmp_path / "data") / {"heart": "processed.va.data", "parkinsons": parkinsons.FILE}[name]
    found = []
    for age in ("60", "20"):
        lines = [line.split(",") for line in file.read_text().splitlines()]
        for line in lines[name == "parkinsons" :]:
            if ",".join(line).startswith(person):
                line[columns.index("age")] = age
        file.write_text("".join(",".join(cells) + "\n" for cells in lines))
        data = load_data(name, seed=0, data_dir=tmp_path / "data")
        found.append(hold_out(data, HeldOut(names=(client,)), seed=0)[0])

    first, second = found
    assert first.note == second.note
    for which, part in first.parts.items():
        others = part.clients != first.client_names.index(client)
        for arrays, changed in ((part.inputs, second.parts[which].inputs), (part.targets, second.parts[which].targets)):
            np.testing.assert_allclose(arrays[""][others], changed[""][others], atol=1e-5)
    spread = first.train.inputs[""][:, : 2 if name == "heart" else None].std(axis=0)  # of numbers that none misses
    assert np.all((np.abs(spread - 1.0) < 1e-5) | (spread == 0.0))
    if name == "parkinsons":
        assert first.train.targets[""].mean() == 0.0
        assert first.note == f"targets are points above the training mean, {2 * 3 + 1:.2f}"


def test_targets_of_parkinsons_are_points_from_the_training_mean(tmp_path: Path):
    """The note has the mean; both scores are two numbers."""
    put_parkinsons(tmp_path / "data")
    data, both = (
        load_data("parkinsons", seed=0, data_dir=tmp_path / "data", settings=settings)
        for settings in ({}, {"target": "both"})
    )

    assert abs(data.train.targets[""].mean()) < 1e-5
    assert data.note == f"targets are points above the training mean, {2 * 3 + 1.5:.2f}"
    assert both.train.targets[""].shape[1:] == (2,)
    assert np.array_equal(both.train.targets[""][:, 1], data.train.targets[""])


def test_later_sessions_of_a_person_are_for_testing(tmp_path: Path):
    """Whole ones: seven of ten for training, one for validation, two for the test."""
    put_parkinsons(tmp_path / "data")
    data = load_data("parkinsons", seed=0, data_dir=tmp_path / "data", settings={"target": "both"})

    for person in range(2):
        sessions = [np.unique(part.targets[""][part.clients == person][:, 0]) for part in data.parts.values()]
        assert [len(each) for each in sessions] == [7, 1, 2]
        assert sessions[0].max() < sessions[1].min() < sessions[2].min()
    assert [len(part) for part in data.parts.values()] == [42, 6, 12]


@pytest.mark.parametrize("packed", [True, False])
def test_later_windows_of_an_activity_are_for_testing(tmp_path: Path, packed: bool):
    """One is left out between two parts, since a window shares half of its samples with the next."""
    put_har(tmp_path / "data", packed=packed)
    data = load_data("har", seed=0, data_dir=tmp_path / "data")

    assert data.client_names == (("1", "3") if packed else ("1", "2", "3"))
    assert ("npz" in data.note) == packed
    for client in range(len(data.client_names)):
        for activity in range(6):
            places = [
                part.inputs[""][(part.clients == client) & (part.targets[""] == activity)][:, 0] * 1000
                for part in data.parts.values()
            ]
            first = np.rint(min(places[0]))
            assert [(np.rint(each) - first).tolist() for each in places] == [list(range(13)), [14], [16, 17, 18, 19]]


@pytest.mark.parametrize(
    ("name", "file", "old", "new", "told"),
    [
        ("heart", "processed.va.data", "30,1,1", "30,1", "processed.va.data: line 1 has 13 values instead of 14"),
        ("heart", "processed.va.data", "30,1,1", "old,1,1", "processed.va.data: column age: .*'old'"),
        ("heart", "processed.va.data", "30,1,1", "?,1,1", "processed.va.data: age is missing in a line"),
        ("heart", "processed.va.data", "30,1,1", "30,1,9", "processed.va.data: cp is 9; it is one of 1, 2, 3, 4"),
        ("parkinsons", parkinsons.FILE, "subject#", "person", "its first line is not the heading subject#,age"),
        ("parkinsons", parkinsons.FILE, "1,61,0", "1,,0", "parkinsons_updrs.data: age is missing in a line"),
        ("har", f"{har.PUBLISHED}/test/y_test.txt", "1\n", "9\n", "expected 561 features and 6 activities"),
        ("har", f"{har.PUBLISHED}/test/y_test.txt", "1\n", "", "have 120, 119, 120 lines"),
        ("har", f"{har.PUBLISHED}/test/X_test.txt", "0.001", "x", "X_test.txt: cannot be read: could not convert"),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong(tmp_path: Path, name, file, old, new, told):
    """With the line or the column."""
    path = put(name, tmp_path / "data") / file
    path.write_text(path.read_text().replace(old, new, 1))

    with pytest.raises(ScenarioError, match=told):
        load_data(name, seed=0, data_dir=tmp_path / "data")


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("heart", heart.PROCESSED[1]),
        ("parkinsons", parkinsons.FILE),
        ("har", f"{har.PUBLISHED}/train/X_train.txt"),
    ],
)
@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00"])
def test_a_foreign_file_is_refused(tmp_path: Path, name: str, file: str, content: bytes):
    """Whatever lies there under the name, the answer is a message about that file."""
    path = put(name, tmp_path / "data") / file
    path.write_bytes(content)

    with pytest.raises(ScenarioError, match=path.name):
        load_data(name, seed=0, data_dir=tmp_path / "data")


@pytest.mark.parametrize("content", [b"", b"no archive"])
def test_a_foreign_archive_is_refused(tmp_path: Path, content: bytes):
    """It is named."""
    (tmp_path / har.PACKED).write_bytes(content)

    with pytest.raises(ScenarioError, match=r"har\.npz: cannot be read"):
        load_data("har", seed=0, data_dir=tmp_path)


def test_the_real_windows_are_read():
    """7,352 of 21 people, or 10,299 of 30, in the proportions of each part."""
    data = real("har")

    people = len(data.client_names)
    assert people in (21, 30)
    assert data.train.input_forms[0].shape == (561,)
    assert min(min(part.values()) for part in counts(data)) >= 15
    if people == 21:
        assert [len(part) for part in data.parts.values()] == [5024, 605, 1471]
        assert data.client_names == tuple(map(str, har.TRAINING_PEOPLE))


def test_the_real_patients_are_read():
    """920, and each hospital's; those who are alike are not divided."""
    data = real("heart")

    assert counts(data) == [
        {"cleveland": 212, "hungarian": 206, "switzerland": 85, "va": 140},
        {"cleveland": 30, "hungarian": 30, "switzerland": 13, "va": 20},
        {"cleveland": 61, "hungarian": 58, "switzerland": 25, "va": 40},
    ]
    seen = [{example.tobytes() for example in part.inputs[""]} for part in data.parts.values()]
    assert not seen[0] & seen[1]
    assert not seen[0] & seen[2]
    assert not seen[1] & seen[2]
    assert sum(len(each) for each in seen) == 918


def test_the_real_recordings_are_read():
    """5,875 of 42 people, none of whose training recordings is of the day of a test one."""
    data = real("parkinsons")

    assert len(data.client_names) == 42
    assert sum(len(part) for part in data.parts.values()) == 5875
    assert [len(part) for part in data.parts.values()] == [4165, 542, 1168]
    assert data.note == "targets are points above the training mean, 28.59"
