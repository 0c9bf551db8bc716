"""Where counters stand in their records: names that never change, and records that stay one write unit."""

from chalicelib.adapters.dynamodb import keys
from chalicelib.adapters.dynamodb.counting import ATTRIBUTES, LAYOUT
from chalicelib.domain import counts
from chalicelib.domain.metrics import Part

WRITE_UNIT = 1_024
BUCKETS = ("5", "10", "25", "50", "100", "250", "500", "1000", "2500", "5000", "10000", "60000", "inf", "sum")
FIRST = {
    Part.DELIVERY: [
        *("asuc", "aret", "adef", "aper", "aunk"),
        *("drl", "dbo", "dec", "ddis", "dram"),
        *("xpf", "xae", "xexp", "xref", "xptl", "xed", "xuns", "xski", "xpoi"),
        *("t", "psuc", "pfai", "r", "l"),
        *(f"{of}{each}" for of in "FPC" for each in BUCKETS),
    ],
    Part.INGEST: ["iacc", "irep", "irej", "ilim", "iuna", *(f"I{each}" for each in BUCKETS)],
    Part.UPKEEP: [
        "s",
        *("ndl", "nar", "nbo", "neg", "ned", "nrec", "nce"),
        *("mpay", "mrow", "mtom"),
    ],
}
SECOND = FIRST | {Part.DELIVERY: [*FIRST[Part.DELIVERY], "b"]}
THIRD = SECOND | {Part.DELIVERY: [*SECOND[Part.DELIVERY], "dnl"]}
LAYOUTS = {1: FIRST, 2: SECOND, 3: THIRD}


def test_the_names_of_a_layout_never_change_and_a_new_one_has_a_layout_of_its_own() -> None:
    """A counter under another name counts from 0; a cell in records of an older layout cannot be added to."""
    assert {part: sorted(names.values()) for part, names in ATTRIBUTES.items()} == {
        part: sorted(names) for part, names in LAYOUTS[LAYOUT].items()
    }


def test_every_cell_has_a_name_of_its_own() -> None:
    for part, names in ATTRIBUTES.items():
        assert len(set(names.values())) == len(names), part
        assert not {"pk", "v", "w"} & set(names.values())
    cells = {cell for each in counts.GROWING for cell in counts.cells(each)}
    assert cells == {cell for names in ATTRIBUTES.values() for cell in names}


def test_a_record_is_one_write_unit_even_when_every_counter_has_fifteen_digits() -> None:
    for part, names in ATTRIBUTES.items():
        key = keys.counters(part, keys.COUNTER_SHARDS - 1)
        stamp = f"{2**64:x}.{2**40:x}"
        counted = sum(len(name) + size_of_number(15) for name in names.values())
        fixed = len("pk") + len(key.pk) + len("v") + size_of_number(2) + len("w") + len(stamp)
        assert counted + fixed <= WRITE_UNIT, part


def size_of_number(digits: int) -> int:
    """Give a number's size in DynamoDB: a byte for every two digits, and one."""
    return -(-digits // 2) + 1
