"""The Python package beside the command: the same bytes, and what Python adds. package_test.py PROGRAM"""

import _thread
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import shardplan

PROGRAM = sys.argv.pop(1)
SMALL = {"model": "llama-3-8b", "cluster": {"base": "dgx-h100", "devices": 8},
         "training": {"global_batch": 64, "sequence": 4096}, "plan": {"tp": 2, "micro_batch": 1}}


def printed(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, check=False).stdout


class SameBytes(unittest.TestCase):
    def test_commands(self):
        name = "tiny-gpt-cpu"
        self.assertEqual(shardplan.plan(name).json,
                         printed("plan", name, "--reproducible", "--format", "json"))
        self.assertEqual(shardplan.evaluate(name).json, printed("evaluate", name, "--format", "json"))
        self.assertEqual(shardplan.explain(name).json, printed("explain", name, "--format", "json"))
        self.assertEqual(shardplan.simulate(name).json, printed("simulate", name, "--format", "json"))
        self.assertEqual(shardplan.sweep(name, {"tp": [1, 2]}).json,
                         printed("sweep", name, "--over", "tp=1,2", "--format", "json"))
        self.assertEqual(shardplan.compare(name, with_="plan.micro_batch=2").json,
                         printed("compare", name, "--with", "plan.micro_batch=2", "--format", "json"))
        self.assertEqual(shardplan.list("models", "llama").json,
                         printed("list", "models", "llama", "--format", "json"))
        self.assertEqual(shardplan.export("llama-3-8b", "megatron", gpus="8xh100").json,
                         printed("export", "llama-3-8b", "--gpus", "8xh100", "--to", "megatron",
                                 "--format", "json"))
        self.assertEqual(shardplan.evaluate(name).report("md").encode(),
                         printed("evaluate", name, "--format", "md"))

    def test_a_job_comes_in(self):
        script = shardplan.export(SMALL, "megatron").report("text")
        job = shardplan.import_job("megatron", script, cluster="dgx-h100")
        self.assertIn("global_batch", json.dumps(job.to_dict()))


class Inputs(unittest.TestCase):
    def test_dict_text_and_parts_are_one(self):
        parts = shardplan.Scenario(
            model="llama-3-8b", cluster=shardplan.Cluster(base="dgx-h100", devices=8),
            training=shardplan.Training(global_batch=64, sequence=4096),
            plan=shardplan.Plan(tp=2, micro_batch=1))
        text = ("model: llama-3-8b\ncluster: {base: dgx-h100, devices: 8}\n"
                "training: {global_batch: 64, sequence: 4096}\nplan: {tp: 2, micro_batch: 1}\n")
        answers = {shardplan.evaluate(scenario).json for scenario in (SMALL, parts, text)}
        self.assertEqual(len(answers), 1)
        self.assertIn("tensor parallel size", shardplan.Plan.__doc__)
        with self.assertRaisesRegex(AttributeError, "did you mean 'tp'"):
            shardplan.Plan(tpp=2)

    def test_errors_have_place_and_remedy(self):
        with self.assertRaises(shardplan.InputError) as caught:
            shardplan.evaluate("model: llama-3-8\ncluster: selene\n")
        self.assertEqual((caught.exception.file, caught.exception.line, caught.exception.column),
                         ("scenario", 1, 8))
        self.assertIn("llama-3-8b", caught.exception.remedy)
        with self.assertRaisesRegex(TypeError, "did you mean 'tokens'"):
            shardplan.evaluate(SMALL, tokns=3)
        for wrong in ("no-such-scenario", "tiny\0cpu", "model: \ud800\n"):
            with self.assertRaises(shardplan.InputError):
                shardplan.plan(wrong)
        itself = dict(SMALL)
        itself["plan"] = itself
        for call in (lambda: shardplan.list(3), lambda: shardplan.evaluate(SMALL, set=[("plan.tp", 2)]),
                     lambda: shardplan.sweep(SMALL, 3), lambda: shardplan.evaluate(itself),
                     lambda: shardplan.evaluate({**SMALL, "model": object()}),
                     lambda: shardplan.plan(SMALL, progress="yes"), lambda: shardplan.evaluate_many(SMALL)):
            with self.assertRaises(TypeError):
                call()

    def test_nothing_fits_is_an_answer(self):
        found = shardplan.plan({**SMALL, "model": "llama-3.1-405b"})
        self.assertEqual(found.status, 3)
        self.assertFalse(found)
        self.assertIsNone(found.best)


class Results(unittest.TestCase):
    def test_attributes_tables_and_pages(self):
        found = shardplan.evaluate(SMALL)
        self.assertEqual(found.time.iteration_s, found.to_dict()["time"]["iteration_s"])
        self.assertEqual(found.rows()[0]["plan.tp"], 2)
        self.assertIn("srcdoc", found._repr_html_())
        with tempfile.TemporaryDirectory() as folder:
            for ending, begin in ((".html", "<!DOCTYPE html>"), (".json", "{"), (".md", "")):
                file = os.path.join(folder, "report" + ending)
                found.save(file)
                with open(file, encoding="utf-8") as text:
                    self.assertTrue(text.read().lower().startswith(begin.lower()), ending)

    def test_answers_without_a_page_and_in_other_processes(self):
        models = shardplan.list("models", "llama")
        self.assertTrue(models._repr_html_().startswith("<pre>"))
        self.assertEqual(models[0].format_version, shardplan.evaluate(SMALL).format_version)
        self.assertEqual(list(models.rows()[0])[0], "model")
        again = pickle.loads(pickle.dumps(models))
        self.assertEqual((again.json, again.report("csv")), (models.json, models.report("csv")))

    def test_help_has_every_flag(self):
        self.assertIn("time_limit: ", shardplan.plan.__doc__)
        with self.assertRaisesRegex(TypeError, "save"):
            shardplan.plan(SMALL, out="x.html")
        with self.assertRaisesRegex(TypeError, "a scenario is a name"):
            shardplan.plan(3)

    def test_stubs_are_python(self):
        from shardplan import stubs
        text = stubs.text()
        compile(text, "shardplan.pyi", "exec")
        self.assertIn("class Plan:", text)


class ManyPlans(unittest.TestCase):
    def test_figures_are_those_of_each_plan(self):
        tp, zero = [1, 2, 4, 8, 3], [1, 0, 1, 0, 0]
        many = shardplan.evaluate_many(SMALL, tp=tp, zero=zero)
        for i in range(4):
            one = shardplan.evaluate({**SMALL, "plan": {"tp": tp[i], "zero": zero[i], "micro_batch": 1}})
            self.assertEqual(many["iteration_s"][i], one.time.iteration_s)
            self.assertEqual(many["peak_bytes"][i], one.memory.peak_bytes)
        self.assertTrue(many["iteration_s"][4] != many["iteration_s"][4])
        self.assertIn("tp", many["errors"][4])
        self.assertEqual(list(shardplan.evaluate_many(SMALL, tp=tp, zero=0)["errors"]),
                         list(shardplan.evaluate_many(SMALL, tp=tp, zero=[0] * 5)["errors"]))
        for error in shardplan.evaluate_many(SMALL, tp=[0, -1, 2**62])["errors"]:
            self.assertIn("allowed: whole numbers 1 to", error)
        for wrong in ([1.5], ["two"], "two", {1: 2}, [[1]]):
            with self.assertRaisesRegex(TypeError, "whole numbers"):
                shardplan.evaluate_many(SMALL, tp=wrong)
        try:
            import numpy
        except ImportError:
            numpy = None
        if numpy is not None:  # of any kind of whole numbers, and not in a row
            for kind in ("int64", "int32", "uint8", "float64"):
                column = numpy.array([1, 9, 2, 9], dtype=kind)[::2]
                self.assertEqual(list(shardplan.evaluate_many(SMALL, tp=column, zero=[1, 0])["iteration_s"]),
                                 list(many["iteration_s"][:2]))
            for wrong in (numpy.array([1.5]), numpy.array([numpy.nan]), numpy.ones((2, 2), dtype=int)):
                with self.assertRaisesRegex(TypeError, "whole numbers"):
                    shardplan.evaluate_many(SMALL, tp=wrong)
        with self.assertRaisesRegex(shardplan.InputError, "as many"):
            shardplan.evaluate_many(SMALL, tp=[1], pp=[1, 2])


class Threads(unittest.TestCase):
    def test_the_same_answers_at_the_same_time(self):
        expected = shardplan.plan("tiny-gpt-cpu").json
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(shardplan.plan("tiny-gpt-cpu").json))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(answers, 4 * [expected])

    # Long beyond any patience, were it not ended: it says when it has begun to price points.
    OVER = {"training.global_batch": range(64, 64 * 400, 64), "micro_batch": [1, 2],
            "zero": [0, 1, 2, 3], "tp": [1, 2, 4, 8]}

    def test_an_interrupt_ends_a_sweep_with_what_there_is(self):
        def progress(seconds, done, points):
            if done > 0:
                _thread.interrupt_main()
        found = shardplan.sweep({**SMALL, "plan": "auto"}, self.OVER, progress=progress)
        self.assertTrue(found.interrupted)
        self.assertTrue(0 < len(found.rows()) < 399 * 32)
        self.assertFalse(shardplan.evaluate(SMALL).interrupted)  # and the next call knows nothing of it

    def test_what_progress_throws_is_not_lost(self):
        def progress(seconds, done, points):
            raise ZeroDivisionError
        with self.assertRaises(ZeroDivisionError):
            shardplan.sweep({**SMALL, "plan": "auto"}, self.OVER, progress=progress)


if __name__ == "__main__":
    unittest.main()
