"""seeds.py: turns of simulations, and how one that failed is told."""

import unittest

import seeds


def simulation(**more):
    return seeds.Simulation("//tests/sim:x_test", ".bazel-bin/tests/sim/x_test",
                            **dict({"case": "faults, many [seeds]", "next_seed": 100}, **more))


class SeedsTest(unittest.TestCase):
    def test_names_of_cases_are_read_and_given_back_to_catch(self):
        self.assertEqual(seeds.case_names("a case\n  another, case\n\n"),
                         ["a case", "another, case"])
        self.assertEqual(seeds.escape("a, b [c] \\d"), "a\\, b \\[c] \\\\d")

    def test_runs_grow_until_they_take_long_enough(self):
        s = simulation()
        self.assertEqual(seeds.take_turn(s, None), (100, 1))
        self.assertEqual(seeds.take_turn(s, 0.1), (101, 4))
        self.assertEqual(seeds.take_turn(s, 0.1), (105, 16))
        self.assertEqual(seeds.take_turn(s, 4.0), (121, 8))
        self.assertEqual(seeds.take_turn(s, 1000.0), (129, 1))
        s.count = 900
        self.assertEqual(seeds.take_turn(s, 0.0), (130, seeds.MOST_SEEDS))

    def test_who_ran_for_the_shortest_time_is_next(self):
        many = [simulation(case=str(i), seconds=i % 3) for i in range(6)]
        self.assertIn(seeds.next_turn(many, 1), (many[0], many[3]))
        self.assertEqual(seeds.next_turn(many[1:3], 1), many[1])
        first = {seeds.next_turn([many[0], many[3]], base).case for base in range(50)}
        self.assertEqual(first, {"0", "3"})

    def test_seeds_that_pass_are_counted(self):
        s, asked = simulation(count=3), []
        took = seeds.run_turn(s, None, lambda f, c: asked.append((f, c)) or (True, 1.5))
        self.assertEqual(took, 1.5)
        self.assertEqual((asked, s.done, s.failure, s.seconds),
                         ([(100, 3)], 3, "", 1.5))

    def test_the_seed_that_failed_is_found_and_can_be_run_again(self):
        s, asked = simulation(count=8), []

        def run(first, count):
            asked.append((first, count))
            return not first <= 103 < first + count, 1.0

        seeds.run_turn(s, None, run)
        self.assertEqual(asked, [(100, 8), (100, 4), (100, 2), (102, 2), (102, 1), (103, 1)])
        self.assertEqual(s.done, 0)
        self.assertEqual(s.failure, "seed 103 failed; again: STRATA_SEED=103 "
                         ".bazel-bin/tests/sim/x_test 'faults\\, many \\[seeds]'; "
                         "then add it to tests/sim/seeds")

    def test_a_single_seed_needs_no_search(self):
        s, asked = simulation(), []
        seeds.run_turn(s, None, lambda f, c: asked.append((f, c)) or (False, 1.0))
        self.assertEqual(asked, [(100, 1)])
        self.assertIn("seed 100 failed", s.failure)

    def test_seeds_that_fail_together_alone_are_told_together(self):
        s = simulation(count=8)
        seeds.run_turn(s, None, lambda f, c: (c < 4, 1.0))
        self.assertIn("seeds 100 to 103 failed together, no half alone; again: STRATA_SEED=100 "
                      "STRATA_SEED_COUNT=4 ", s.failure)

    def test_every_seed_of_a_run_is_found_in_few_runs(self):
        for bad in (0, 1, 49, 50, 51, 500, 776, 777):
            tried = []

            def run_some(first, count):
                tried.append(first)
                return not first <= bad < first + count

            self.assertEqual(seeds.find_failing(0, 778, run_some), (bad, 1))
            self.assertLess(len(tried), 21)

    def test_bases_differ(self):
        bases = {seeds.new_base() for _ in range(20)}
        self.assertGreater(len(bases), 15)
        self.assertTrue(all(0 < b < 2**40 for b in bases))
