"""What the models must publish, worked out by hand."""

from chaos.expect import expect_join, expect_large, expect_two


def test_rows_leave_by_the_order_logs_clock() -> None:
    order = [
        {"outputs": 0, "clock": 0, "inputs": []},
        {"outputs": 2, "clock": 1000, "inputs": [["a", 0, 1], ["b", 0, 1]]},
        {"outputs": 1, "clock": 3999, "inputs": [["b", 1, 2]]},
        {"outputs": 3, "clock": 4000, "inputs": [["a", 1, 2]]},
        {"outputs": 2, "clock": 7500, "inputs": []},
    ]
    inputs = {"a": ["I,N,1,x", "I,N,4,x"], "b": ["I,N,2,x", "I,N,3,x"]}
    assert expect_two(order, inputs) == [
        "I,N, 1,x", "I,N, 2,x", "I,N, 3,x",
        "D,R, 1,x", "D,R, 2,x", "I,N, 4,x",
        "D,R, 3,x", "D,R, 4,x",
    ]  # fmt: skip


def test_an_order_finds_a_price_that_was_read_before_it_and_is_young() -> None:
    order = [
        {"clock": 1000, "inputs": [["orders", 0, 1], ["prices", 0, 2], ["orders", 1, 2]]},
        {"clock": 3999, "inputs": [["orders", 2, 3]]},
        {"clock": 4000, "inputs": [["orders", 3, 4]]},
    ]
    inputs = {
        "orders": ["I,N,2,1,x", "I,N,4,1,x", "I,N,6,3,x", "I,N,8,3,x"],
        "prices": ["I,N,1,10,x", "I,N,3,30,x"],
    }
    assert expect_join(order, inputs) == [
        "I,N, 2,1,x,", "I,N, 4,1,x,10", "I,N, 6,3,x,30", "I,N, 8,3,x,",
    ]  # fmt: skip


def test_every_tenth_row_of_a_large_state_comes_out() -> None:
    order = [{"clock": 1, "inputs": [["rows", 0, 2]]}, {"clock": 2, "inputs": [["rows", 2, 4]]}]
    inputs = {"rows": ["P,N,7,0,a,1", "P,N,8,1,b,1", "P,N,7,10,c,2", "P,N,9,11,d,2"]}
    assert expect_large(order, inputs) == ["P,N, 7,0,a,1", "P,N, 7,10,c,2"]
