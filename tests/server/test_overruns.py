"""Which reviews are not tried on the event loop again."""

from webhook.server.overruns import REMEMBERED_S, SMALL_BYTES, TRIES, Overruns

MINE, YOURS, SIZE = ("team-a", "ann"), ("team-b", "ann"), 4 * SMALL_BYTES


def _overran(size: int) -> Overruns:
    overruns = Overruns()
    for _ in range(TRIES):
        overruns.note(MINE, size, 0.0)
    return overruns


def test_what_took_too_long_is_expected_to_do_so_again():
    assert _overran(SIZE).expects(MINE, SIZE, 1.0)
    assert _overran(SIZE).expects(MINE, SIZE // 2, 1.0)


def test_everything_else_is_tried():
    overruns = _overran(SIZE)
    assert not overruns.expects(YOURS, SIZE, 1.0)
    assert not overruns.expects(MINE, SIZE // 2 - 1, 1.0)
    assert not overruns.expects(MINE, SIZE, REMEMBERED_S)
    assert not _overran(SMALL_BYTES).expects(MINE, SMALL_BYTES, 1.0)


def test_one_overrun_may_be_bad_luck():
    overruns = Overruns()
    overruns.note(MINE, SIZE, 0.0)
    assert not overruns.expects(MINE, SIZE, 1.0)
    overruns.note(MINE, SIZE, REMEMBERED_S + 1)
    assert not overruns.expects(MINE, SIZE, REMEMBERED_S + 2)


def test_so_many_tenants_are_remembered():
    overruns = _overran(SIZE)
    for number in range(5000):
        overruns.note(("", str(number)), SIZE, 1.0)
    assert not overruns.expects(MINE, SIZE, 1.0)
