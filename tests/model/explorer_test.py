"""explore: counts, shortest traces, states alike, limits, and states from which nothing ends."""

import unittest

from explore.explorer import explore
from explore.model import Model, Violation


class Counter(Model):
    """Two counters go up to `end`; a fault may take the first one to `trap`, for good."""
    PARAMETERS = dict(end=2, trap=0, forbidden=None, no_step_from=None, symmetry=False)

    def start(self):
        return (0, 0)

    def check(self, state):
        if state == self.forbidden:
            raise Violation("P1", "reached %d, %d", *state)

    def done(self, state):
        return state == (self.end, self.end)

    def canonical(self, state):
        return tuple(sorted(state)) if self.symmetry else state

    def steps(self, state):
        if state == self.no_step_from:
            raise Violation("P2", "a step breaks")
        first, second = state
        if first < 0:
            return [("round", (), False, (-3 - first, second))]  # -1 and -2 in turn
        found = [("nothing", (), False, state)]
        if first < self.end:
            found.append(("first to %d", (first + 1,), False, (first + 1, second)))
        if second < self.end:
            found.append(("second to %d", (second + 1,), False, (first, second + 1)))
        if self.trap and first == self.trap:
            found.append(("falls", (), True, (-1, second)))
        return found


class ExplorerTest(unittest.TestCase):
    def test_all_states_and_edges_are_counted(self):
        result = explore(Counter())
        self.assertEqual((result.states, result.edges, result.live_edges), (9, 12, 12))
        self.assertEqual((result.promise, result.violation, result.trace), ("", "", ()))
        self.assertTrue(result.complete)

    def test_states_alike_are_one(self):
        result = explore(Counter(symmetry=True))
        self.assertEqual((result.states, result.promise), (6, ""))

    def test_a_state_that_breaks_a_promise_ends_it_with_the_shortest_trace(self):
        result = explore(Counter(end=3, forbidden=(2, 1)))
        self.assertEqual((result.promise, result.violation), ("P1", "P1: reached 2, 1"))
        self.assertEqual(result.trace, ("first to 1", "first to 2", "second to 1"))
        self.assertTrue(result.complete)
        self.assertLess(result.states, 16)

    def test_the_start_state_is_checked(self):
        result = explore(Counter(forbidden=(0, 0)))
        self.assertEqual((result.states, result.promise, result.trace), (1, "P1", ()))

    def test_a_step_that_breaks_a_promise_adds_no_state(self):
        result = explore(Counter(no_step_from=(1, 0)))
        self.assertEqual((result.promise, result.trace), ("P2", ("first to 1",)))
        self.assertEqual(result.states, 3)

    def test_a_state_without_a_way_to_the_end_is_told_with_what_still_happens(self):
        result = explore(Counter(end=1, trap=1))
        self.assertEqual(result.promise, "L")
        self.assertIn("(4 such states)", result.violation)
        self.assertEqual(result.trace[:2], ("first to 1", "falls"))
        self.assertEqual((result.states, result.edges, result.live_edges), (8, 10, 8))

    def test_a_fault_is_no_way_to_the_end(self):
        class Rescued(Counter):
            def steps(self, state):
                if state[0] < 0:
                    return [("is rescued", (), True, (self.end, self.end))]
                return super().steps(state)

        self.assertEqual(explore(Rescued(end=1, trap=1)).promise, "L")

    def test_a_run_with_a_limit_is_not_complete_and_finds_nobody_stuck_at_its_edge(self):
        result = explore(Counter(end=50), limit=100)
        self.assertFalse(result.complete)
        self.assertEqual(result.promise, "")
        self.assertGreater(result.states, 100)

    def test_what_happens_at_the_limit_is_still_found(self):
        result = explore(Counter(end=50, forbidden=(1, 0)), limit=100)
        self.assertEqual((result.promise, result.complete), ("P1", True))

    def test_a_parameter_that_a_model_lacks_is_refused_by_name(self):
        with self.assertRaisesRegex(ValueError, "Counter has no parameter edn; it has end, "):
            Counter(edn=3)

    def test_notes_are_told_sorted_and_once(self):
        class Noting(Counter):
            def done(self, state):
                self.note("late" if sum(state) > 2 else "early")
                return super().done(state)

        self.assertEqual(explore(Noting()).notes, ("early", "late"))
