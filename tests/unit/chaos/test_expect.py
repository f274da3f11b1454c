"""What the model `two` must publish, worked out by hand."""

from chaos.expect import expect_two


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
