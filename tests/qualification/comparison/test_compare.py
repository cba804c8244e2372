"""Two verified bundles against each other: what is found, what cannot be told, what is refused, and the exit statuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qualification import cli, identity, schema, strictjson
from qualification.comparison.asking import aspects, share
from qualification.comparison.command import Result, compare_bundles
from qualification.comparison.document import Asked
from qualification.errors import InputError, RefusedBundle, Undecided, UsageError, WorseThanAllowed
from qualification.pins import read_pins
from qualification.tamper.good_documents import make_identity
from tests.qualification.comparison.made import Made, make, trust
from tests.qualification.desk import FAKE, Desk

Maker = Callable[..., Path]


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> Maker:
    """Bundles of this module, each made once."""
    place = tmp_path_factory.mktemp("bundles")

    def built(name: str, **shown: Any) -> Path:
        root = place / name
        return root if root.exists() else make(root, Made(name=name, **shown))

    return built


@pytest.fixture(scope="module")
def base(maker: Maker) -> Path:
    return maker("base-run")


def compared(*places: Path, allow: str = "", limit: float | None = None, within: float = 0.05) -> Result:
    asked = Asked(within=within, allow=aspects(allow) if allow else frozenset(), limit=limit)
    return compare_bundles(places, [trust()], asked)


def words(document: dict[str, Any]) -> set[str]:
    return {figure["verdict"] for profile in document["profiles"] for figure in profile["figures"]}


def figure(document: dict[str, Any], profile: str, name: str) -> dict[str, Any]:
    of_profile = next(item for item in document["profiles"] if item["profile"] == profile)
    found: dict[str, Any] = next(item for item in of_profile["figures"] if item["figure"] == name)
    return found


def test_the_same_subject_twice_shows_no_difference(base: Path, maker: Maker) -> None:
    result = compared(base, maker("again-run", after=3_600), limit=0.03)
    assert words(result.document) == {"no_difference"}
    assert result.document["headline"][0] == (
        "B against A, 6 figures: 0 better, 0 worse, 6 no difference, 0 cannot tell. Both are one subject (A/A)."
    )
    assert result.document["gate"] == {"limit": 0.03, "outcome": "holds", "reasons": []}
    assert result.failure is None


def test_a_tenth_slower_over_six_rounds_is_found(base: Path, maker: Maker) -> None:
    result = compared(base, maker("slow-run", slower=1.1, after=3_600), limit=0.03)
    assert words(result.document) == {"worse"}
    found = figure(result.document, "B3", "rtf")
    assert found["low"] < 1.1 < found["high"]
    assert (found["rounds"], found["pairs"]) == (6, 12)
    assert found["high"] - found["low"] < 0.02
    assert isinstance(result.failure, WorseThanAllowed)
    assert "B1 rtf: at least" in str(result.failure)


def test_exchanged_sides_say_better(base: Path, maker: Maker) -> None:
    result = compared(maker("slow-run", slower=1.1, after=3_600), base, limit=0.03)
    assert words(result.document) == {"better"}
    assert result.failure is None


def test_worse_within_the_limit_does_not_fail(base: Path, maker: Maker) -> None:
    result = compared(base, maker("slow-run", slower=1.1, after=3_600), limit=0.2)
    assert words(result.document) == {"worse"}
    assert result.failure is None


def test_two_rounds_cannot_tell_whatever_the_interval(maker: Maker) -> None:
    a, b = maker("two-a-run", rounds=2, noise=0.0), maker("two-b-run", rounds=2, noise=0.0, slower=2.0, after=600)
    result = compared(a, b, limit=0.03)
    found = figure(result.document, "B1", "rtf")
    assert found["low"] > 1.9
    assert (found["verdict"], found["reason"]) == ("cannot_tell", "too_few_rounds")
    assert words(result.document) == {"cannot_tell"}
    assert any("this design cannot tell: B1 (2), B3 (2)" in line for line in result.document["headline"])
    assert isinstance(result.failure, Undecided)


def test_noise_leaves_it_open_and_a_gate_does_not_pass_on_that(maker: Maker) -> None:
    a, b = maker("loud-a-run", noise=0.4), maker("loud-b-run", noise=0.4, after=3_600)
    result = compared(a, b, limit=0.03)
    found = figure(result.document, "B1", "rtf")
    assert (found["verdict"], found["reason"]) == ("cannot_tell", "interval_too_wide")
    assert found["minimum_detectable"] > 0.05
    assert isinstance(result.failure, Undecided)


def test_a_pair_of_runs_taken_in_turn_adds_up_to_rounds(maker: Maker) -> None:
    runs = [
        maker(f"turn-{side}-{number}", rounds=1, slower=1.1 if side == "b" else 1.0, after=100 * at)
        for at, (side, number) in enumerate((s, n) for n in range(6) for s in "ab")
    ]
    document = compared(*runs).document
    assert {profile["order"] for profile in document["profiles"]} == {"alternating"}
    assert document["profiles"][0]["sequence"] == "AB" * 6
    assert words(document) == {"worse"}
    assert [item["run_id"][:8] for item in document["b"]["bundles"]] == [f"turn-b-{n}" for n in range(6)]


def test_the_order_is_read_from_the_clocks(base: Path, maker: Maker) -> None:
    document = compared(base, maker("again-run", after=3_600)).document
    assert {item["order"] for item in document["profiles"]} == {"one_after_the_other"}
    assert document["profiles"][0]["sequence"] == "A" * 6 + "B" * 6
    at_once = compared(base, maker("at-once-run")).document
    assert {item["order"] for item in at_once["profiles"]} == {"overlapping"}
    assert words(at_once) == {"cannot_tell"}
    assert figure(at_once, "B1", "ttfa")["reason"] == "overlapping_runs"


def test_failures_stand_in_the_headline_and_hold_the_gate_up(base: Path, maker: Maker) -> None:
    result = compared(base, maker("failing-run", fails=2, after=3_600), limit=0.5)
    assert (
        "A: 0 of 24 requests failed, 24 ended naturally; B: 4 of 24 requests failed" in result.document["headline"][1]
    )
    assert result.document["profiles"][0]["succeeded"] == 10
    assert isinstance(result.failure, Undecided)
    assert "B1: 2 requests failed, 0 of A did" in str(result.failure)


def _machine(document: dict[str, Any]) -> None:
    document["machine"]["cpu_model"] = "Other CPU"


def _text(document: dict[str, Any]) -> None:
    document["entries"][-1]["text"] = "Yet another sentence for the load profiles, of a length that is about the same."


def _ceiling(document: dict[str, Any]) -> None:
    document["parameters"]["max_duration_seconds"] = 10


@pytest.mark.parametrize(
    ("aspect", "field", "path", "change"),
    [
        ("machine", "cpu_model", "environment.json", _machine),
        ("workload", "entries", "workload.json", _text),
        ("sampling", "max_duration_seconds", "run.json", _ceiling),
    ],
)
def test_what_differs_is_refused_unless_asked_for_and_then_said(
    aspect: str, field: str, path: str, change: Callable[[Any], None], base: Path, maker: Maker
) -> None:
    other = maker(f"other-{aspect}", after=3_600, changes={path: change})
    with pytest.raises(InputError, match=rf"not comparable: {aspect} {field}: .*--allow {aspect}"):
        compared(base, other)
    document = compared(base, other, allow=aspect).document
    assert f"Compared because it was asked for, although the {aspect} differs: {field}." in document["headline"]
    assert [item["field"] for item in document["differences"]] == [field]


def _unverified(document: dict[str, Any]) -> None:
    document["tier"] = "unverified"


def _unknown_files(document: dict[str, Any]) -> None:
    """What a run says of an endpoint, whose files nobody can hash."""
    nothing = identity.judge((), read_pins(make_identity()[0]))
    document.update(identity.identity_document("unknown-run", nothing))


def test_another_tier_is_refused_unless_asked_for(base: Path, maker: Maker) -> None:
    other = maker("other-tier", after=3_600, changes={"run.json": _unverified, "identity.json": _unknown_files})
    with pytest.raises(InputError, match='tier tier: "reference" and "unverified"'):
        compared(base, other)
    assert any("although the tier differs" in line for line in compared(base, other, allow="tier").document["headline"])


def test_what_neither_side_takes_is_said(maker: Maker) -> None:
    def untold(document: dict[str, Any]) -> None:
        document["subject"]["leaves_open"] = ["sampling"]

    a = maker("open-a-run", changes={"run.json": untold})
    b = maker("open-b-run", after=3_600, changes={"run.json": untold})
    told = [line for line in compared(a, b).document["headline"] if "takes no setting of sampling" in line]
    assert [line[0] for line in told] == ["A", "B"]


def test_another_plan_is_another_workload(base: Path, maker: Maker) -> None:
    other = maker("short-run", rounds=2, after=3_600)
    with pytest.raises(InputError, match=r"workload B1\.rounds: 6 and 2"):
        compared(base, other)
    assert compared(base, other, allow="workload").document["profiles"][0]["only_a"] == 0


def test_a_sentence_that_one_side_lacks_is_counted_not_matched(base: Path, maker: Maker) -> None:
    other = maker("other-workload", after=3_600, changes={"workload.json": _text})
    profile = compared(base, other, allow="workload").document["profiles"][0]
    assert (profile["matched"], profile["succeeded"], profile["only_a"], profile["only_b"]) == (6, 6, 6, 6)


def test_a_refused_bundle_is_not_compared(base: Path, tmp_path: Path) -> None:
    bad = make(tmp_path / "bad", Made(name="tampered", after=3_600))
    path = bad / "samples/b1.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"stop"', b'"length"', 1))
    with pytest.raises(RefusedBundle, match=r"bad is refused[\s\S]*file\.size"):
        compared(base, bad)
    with pytest.raises(RefusedBundle):
        compared(bad, base)


def test_a_bundle_is_not_compared_with_itself_or_without_a_partner(base: Path, maker: Maker) -> None:
    with pytest.raises(InputError, match="a bundle comes twice"):
        compared(base, base)
    with pytest.raises(UsageError, match="in pairs"):
        compared(base)


def test_one_side_is_one_subject(base: Path, maker: Maker) -> None:
    def other(document: dict[str, Any]) -> None:
        document["subject"]["precision"] = "int8"

    changed = maker("int8-run", after=7_200, changes={"run.json": other})
    assert "A/A" not in compared(base, changed).document["headline"][0]
    with pytest.raises(InputError, match="side A are not of one subject"):
        compared(base, maker("again-run", after=3_600), changed, maker("fourth-run", after=9_000))


def _command(*words: str | Path, capsys: pytest.CaptureFixture[str], places: Path) -> tuple[int, str, str]:
    policy, pins = places / "policy.json", places / "pins.json"
    status = cli.main(["compare", *map(str, words), "--policy", str(policy), "--pins", str(pins)])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_the_command_writes_one_document_and_the_same_bytes_again(
    base: Path, maker: Maker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = maker("slow-run", slower=1.1, after=3_600)
    status, table, _ = _command(base, other, "--out", tmp_path / "c.json", capsys=capsys, places=base)
    assert status == 0
    assert "worse by" in table
    assert "least detectable" in table
    written = (tmp_path / "c.json").read_bytes()
    schema.load("comparison", tmp_path / "c.json")
    status, printed, _ = _command(base, other, "--json", capsys=capsys, places=base)
    assert printed.encode() == written == strictjson.dumps(json.loads(printed))
    assert str(tmp_path) not in printed


@pytest.mark.parametrize(
    ("other", "shown", "options", "expected"),
    [
        ("slow-run", {"slower": 1.1, "after": 3_600}, ("--fail-if-worse", "3%"), 16),
        ("again-run", {"after": 3_600}, ("--fail-if-worse", "3%"), 0),
        ("again-run", {"after": 3_600}, ("--fail-if-worse", "0.1%"), 17),
        ("other-machine", {"after": 3_600, "changes": {"environment.json": _machine}}, (), 3),
        ("other-machine", {"after": 3_600, "changes": {"environment.json": _machine}}, ("--allow", "machine,tier"), 0),
    ],
)
def test_exit_statuses(
    other: str, shown: dict[str, Any], options: tuple[str, ...], expected: int, base: Path, maker: Maker,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    status, _, error = _command(base, maker(other, **shown), *options, capsys=capsys, places=base)
    assert status == expected
    assert bool(error) == bool(expected)


def test_the_packaged_policy_does_not_accept_bundles_of_another(base: Path, maker: Maker) -> None:
    assert cli.main(["compare", str(base), str(maker("again-run", after=3_600))]) == RefusedBundle.exit_code


@pytest.mark.parametrize("text", ["3", "0.03", "-1%", "0%", "100%", "x%", ""])
def test_a_limit_is_a_percentage_with_its_sign(text: str) -> None:
    with pytest.raises(Exception, match="write it as 3%"):
        share(text)
    assert share("3%") == 0.03
    with pytest.raises(SystemExit):
        cli.main(["compare", "a", "b", "--allow", "weather"])


def test_two_qualified_runs_of_six_rounds_are_compared(desk: Desk, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for place in (first, second):
        subject = ("--engine-command", FAKE, "--model", str(desk.model))
        assert desk.qualify(*subject, "--rounds", "6", "--out", str(place)) == 0
    trusted = ("--policy", str(desk.root / "policy.json"), "--pins", str(desk.root / "pins.json"))
    assert cli.main(["compare", str(first), str(second), *trusted, "--out", str(tmp_path / "c.json")]) == 0
    document = schema.load("comparison", tmp_path / "c.json")
    loads = {item["profile"]: item for item in document["profiles"]}
    assert loads["B1"]["sequence"] == "A" * 6 + "B" * 6
    assert {item["reason"] for item in loads["B1"]["figures"]} <= {None, "interval_too_wide"}
    assert loads["EOS"]["figures"] == []
    assert loads["EOS"]["a"]["natural"] == loads["EOS"]["b"]["natural"] == 24
    assert not any("cannot tell:" in line for line in document["headline"])
