"""Contenders of an interleaved comparison that need no GPU: convsched and ONNX Runtime.

A contender has a name, sample() (one latency in microseconds), outputs() (float32 arrays from the
common input), details() (members of its record entry) and first_result_s: the seconds that its
constructor took until there was a first result, with everything compiled, tuned or captured for it."""
import time

import numpy

import convsched


class Contender:
    name = ""
    how = ""  # how a sample is taken
    first_result_s = None

    def sample(self):
        raise NotImplementedError

    def host_sample(self):
        """Host time of one whole call, microseconds, or None."""
        return None

    def outputs(self):
        raise NotImplementedError

    def details(self):
        return {}

    def close(self):
        pass


class Convsched(Contender):
    how = "cs_session_latency: device events around one launch, the device busy until just before"

    def __init__(self, device, graph, policy, batch, precision, inputs, **options):
        self.name = policy
        self.inputs = inputs
        self.results = [numpy.zeros(shape, numpy.float32) for shape in graph.output_shapes(batch)]
        start = time.perf_counter()
        self.session = convsched.Session(device, graph, policy, batch, precision, **options)
        self.session.run(self.inputs, self.results)
        self.first_result_s = time.perf_counter() - start

    def sample(self):
        return self.session.latency()

    def host_sample(self):
        start = time.perf_counter_ns()
        self.session.run(self.inputs, self.results)
        return (time.perf_counter_ns() - start) / 1e3

    def outputs(self):
        self.session.run(self.inputs, self.results)
        return [r.copy() for r in self.results]

    def details(self):
        info = self.session.info()
        verified = self.session.verify("sample")
        kept = ("streams", "split", "kernels", "arena_bytes", "workspace_bytes", "prepare_s", "bounds",
                "timings_s", "graph_hash")
        entry = {key: info[key] for key in kept if key in info}
        return {**entry, "latency_b2b_us": self.session.latency_b2b(20),
                "verification": verified.as_record()}

    def close(self):
        self.session.close()


class OnnxRuntime(Contender):
    name = "onnxruntime.cpu"
    how = "host clock around one run with bound inputs and outputs"

    def __init__(self, _, __, ___, inputs, onnx_file, threads):
        import onnxruntime
        path = onnx_file()
        start = time.perf_counter()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.add_free_dimension_override_by_name("N", inputs[0].shape[0])
        self.session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
        self.version = onnxruntime.__version__
        self.threads = threads
        names = [spec.name for spec in self.session.get_inputs()]
        self.results = self.session.run(None, dict(zip(names, inputs)))
        self.first_result_s = time.perf_counter() - start
        self.binding = self.session.io_binding()
        self.inputs = inputs
        for name, array in zip(names, inputs):
            self.binding.bind_cpu_input(name, array)
        for spec, array in zip(self.session.get_outputs(), self.results):
            self.binding.bind_output(spec.name, "cpu", 0, numpy.float32, array.shape, array.ctypes.data)

    def sample(self):
        start = time.perf_counter_ns()
        self.session.run_with_iobinding(self.binding)
        return (time.perf_counter_ns() - start) / 1e3

    host_sample = sample

    def outputs(self):
        self.session.run_with_iobinding(self.binding)
        return [r.copy() for r in self.results]

    def details(self):
        return {"version": self.version, "threads": self.threads, "streams": 1}
