"""libconvsched through ctypes: graphs, devices and sessions as Python objects.

Arrays are anything writable with the buffer protocol that holds C floats
(numpy arrays, array.array). Errors raise convsched.Error with the library's message.
"""
import ctypes
import json
import math
import os

c_char_pp = ctypes.POINTER(ctypes.c_char_p)
PRECISIONS = ("f32", "tf32", "f16", "bf16")
VERIFY = {"sample": 0, "full": 1}


class Error(Exception):
    def __init__(self, message, exit_code):
        super().__init__(message)
        self.exit_code = exit_code


class Options(ctypes.Structure):
    """cs_session_options, member by member."""
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("batch", ctypes.c_int64),
        ("precision", ctypes.c_int),
        ("policy", ctypes.c_char_p),
        ("weights_path", ctypes.c_char_p),
        ("seed", ctypes.c_uint64),
        ("workspace_limit", ctypes.c_int64),
        ("memory_limit", ctypes.c_int64),
        ("max_streams", ctypes.c_int),
        ("frozen", ctypes.c_bool),
        ("refresh", ctypes.c_bool),
        ("deterministic", ctypes.c_bool),
        ("cache_dir", ctypes.c_char_p),
        ("pins", c_char_pp),
        ("n_pins", ctypes.c_int),
        ("bans", c_char_pp),
        ("n_bans", ctypes.c_int),
        ("plan_path", ctypes.c_char_p),
        ("keep", c_char_pp),
        ("n_keep", ctypes.c_int),
        ("cancelled", ctypes.c_void_p),
        ("cancelled_user", ctypes.c_void_p),
        ("search_seconds", ctypes.c_double),
        ("search_steps", ctypes.c_int),
        ("no_graph", ctypes.c_bool),
        ("partition", ctypes.c_char_p),
        ("in_flight", ctypes.c_int),
        ("allows", c_char_pp),
        ("n_allows", ctypes.c_int),
        ("micro_batches", ctypes.c_int),
    ]


class Verification(ctypes.Structure):
    """cs_verification."""
    _fields_ = [
        ("passed", ctypes.c_bool),
        ("nodes_checked", ctypes.c_int),
        ("rel_l2", ctypes.c_double),
        ("max_scaled", ctypes.c_double),
        ("tolerance", ctypes.c_double),
        ("bitwise_equal", ctypes.c_bool),
        ("bitwise_applies", ctypes.c_bool),
        ("end_to_end", ctypes.c_double),
        ("end_to_end_limit", ctypes.c_double),
        ("worst_node", ctypes.c_char * 128),
        ("worst_ratio", ctypes.c_double),
        ("problem", ctypes.c_char * 256),
    ]

    def as_record(self):
        record = {"passed": self.passed, "rel_l2": self.rel_l2, "max_scaled": self.max_scaled,
                  "tolerance": self.tolerance, "nodes_checked": self.nodes_checked,
                  "worst_node": os.fsdecode(self.worst_node),
                  "worst_ratio": self.worst_ratio if math.isfinite(self.worst_ratio) else None,
                  "bitwise_equal": self.bitwise_equal if self.bitwise_applies else None}
        if not self.passed:
            record["problem"] = os.fsdecode(self.problem)
        return record


class PipelineRate(ctypes.Structure):
    """cs_pipeline_rate."""
    _fields_ = [
        ("requests", ctypes.c_int),
        ("seconds", ctypes.c_double),
        ("images_per_s", ctypes.c_double),
        ("host_images_per_s", ctypes.c_double),
        ("latency_us", ctypes.c_double),
        ("latency_p10_us", ctypes.c_double),
        ("latency_p90_us", ctypes.c_double),
        ("joules", ctypes.c_double),
        ("all_requests", ctypes.c_int),
    ]


class PipelineCheck(ctypes.Structure):
    """cs_pipeline_check."""
    _fields_ = [
        ("passed", ctypes.c_bool),
        ("requests", ctypes.c_int),
        ("bitwise_applies", ctypes.c_bool),
        ("bitwise_equal", ctypes.c_bool),
        ("rel_l2", ctypes.c_double),
        ("problem", ctypes.c_char * 256),
    ]

    def as_record(self):
        record = {"passed": self.passed, "requests": self.requests, "rel_l2": self.rel_l2,
                  "bitwise_equal": self.bitwise_equal if self.bitwise_applies else None}
        if not self.passed:
            record["problem"] = os.fsdecode(self.problem)
        return record


def _encoded(text):
    return None if text is None else os.fsencode(text)


def _views(arrays):
    """(pointers, sizes, count, what must live as long) of float32 buffers."""
    # numpy arrays give their address; anything else goes through the buffer protocol.
    buffers = [(ctypes.c_float * (memoryview(a).nbytes // 4)).from_buffer(a) for a in arrays]
    pointers = (ctypes.c_void_p * len(arrays))(*[ctypes.addressof(b) for b in buffers])
    sizes = (ctypes.c_int64 * len(arrays))(*[len(b) for b in buffers])
    return pointers, sizes, len(arrays), buffers


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(os.path.abspath(path))
        self.c.cs_status_message.restype = ctypes.c_char_p
        self.c.cs_status_message.argtypes = [ctypes.c_void_p]
        self.c.cs_status_exit_code.argtypes = [ctypes.c_void_p]
        self.c.cs_status_free.argtypes = [ctypes.c_void_p]
        self.c.cs_status_free.restype = None
        self.c.cs_version_string.restype = ctypes.c_char_p
        self.c.cs_string_free.argtypes = [ctypes.c_void_p]
        self.c.cs_string_free.restype = None
        self.c.cs_pipeline_arena_bytes.restype = ctypes.c_int64
        self.c.cs_pipeline_how.restype = ctypes.c_char_p
        for name in ("cs_graph_destroy", "cs_device_close", "cs_session_destroy",
                     "cs_session_options_init", "cs_pipeline_destroy"):
            getattr(self.c, name).restype = None

    @property
    def version(self):
        return self.c.cs_version_string().decode()

    def call(self, name, *args):
        """Calls a function that returns a cs_status; raises Error for anything but success."""
        function = getattr(self.c, name)
        function.restype = ctypes.c_void_p
        status = function(*args)
        if status:
            message = self.c.cs_status_message(status).decode()
            code = self.c.cs_status_exit_code(status)
            self.c.cs_status_free(status)
            raise Error(message, code)

    def json(self, name, *args):
        """Calls a function whose last argument receives JSON text."""
        text = ctypes.c_void_p()
        self.call(name, *args, ctypes.byref(text))
        try:
            return json.loads(ctypes.cast(text, ctypes.c_char_p).value)
        finally:
            self.c.cs_string_free(text)

    def load_graph(self, path):
        """A convsched.graph/1, or an ONNX model (by the extension .onnx)."""
        return Graph(self, path)

    def check_import(self, path):
        """What of an ONNX model can be imported: convsched.import-check/1."""
        return self.json("cs_import_check_json", _encoded(path))

    def open_device(self, spec):
        return Device(self, spec)


class Handle:
    """An object of the library, destroyed with close() or at the end of a with block."""
    destroy = ""

    def __init__(self, library):
        self.library = library
        self.handle = ctypes.c_void_p()

    def close(self):
        if self.handle:
            getattr(self.library.c, self.destroy)(self.handle)
            self.handle = ctypes.c_void_p()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Graph(Handle):
    destroy = "cs_graph_destroy"

    def __init__(self, library, path):
        super().__init__(library)
        load = "cs_graph_import" if str(path).endswith(".onnx") else "cs_graph_load"
        library.call(load, _encoded(path), ctypes.byref(self.handle))

    def _shapes(self, side):
        count = getattr(self.library.c, f"cs_graph_{side}_count")(self.handle)
        shapes = []
        for i in range(count):
            dims = (ctypes.c_int64 * 8)()
            rank = getattr(self.library.c, f"cs_graph_{side}_shape")(self.handle, i, dims)
            shapes.append([dims[k] for k in range(rank)])
        return shapes

    def input_shapes(self, batch):
        return [[batch if d == -1 else d for d in shape] for shape in self._shapes("input")]

    def output_shapes(self, batch):
        return [[batch if d == -1 else d for d in shape] for shape in self._shapes("output")]

    def save(self, path):
        """An imported graph as JSON, its weights beside it."""
        self.library.call("cs_graph_save", self.handle, _encoded(path))

    def export_onnx(self, path, weights_path=None, seed=0):
        """As ONNX, with its parameters: of the file (safetensors), the graph's own, or generated from the seed."""
        self.library.call("cs_graph_export_onnx", self.handle, _encoded(weights_path), ctypes.c_uint64(seed),
                          _encoded(path))

    def write_generated_weights(self, seed, path):
        self.library.call("cs_graph_write_generated_weights", self.handle, ctypes.c_uint64(seed),
                          _encoded(path))


class Device(Handle):
    destroy = "cs_device_close"

    def __init__(self, library, spec):
        super().__init__(library)
        library.call("cs_device_open", spec.encode(), None, ctypes.byref(self.handle))

    def info(self):
        return self.library.json("cs_device_info_json", self.handle)

    def energy(self):
        """Joules that the whole board has used so far; Error where there is no counter, and why."""
        joules = ctypes.c_double()
        self.library.call("cs_device_energy", self.handle, ctypes.byref(joules))
        return joules.value


class Session(Handle):
    destroy = "cs_session_destroy"

    def __init__(self, device, graph, policy="sequential", batch=1, precision="f32", **more):
        """`more`: members of cs_session_options by name (weights_path, seed, cache_dir, …)."""
        super().__init__(device.library)
        options = Options()
        self.library.c.cs_session_options_init(ctypes.byref(options))
        if options.struct_size != ctypes.sizeof(Options):
            raise Error(f"cs_session_options has {options.struct_size} bytes, "
                        f"{ctypes.sizeof(Options)} wanted: another version of the library", 2)
        options.policy = policy.encode()
        options.batch = batch
        options.precision = PRECISIONS.index(precision)
        for name, value in more.items():
            if not hasattr(options, name):
                raise TypeError(f"no session option {name}")
            setattr(options, name, _encoded(value) if isinstance(value, (str, os.PathLike)) else value)
        self.library.call("cs_session_create", device.handle, graph.handle, ctypes.byref(options),
                          ctypes.byref(self.handle))

    def run(self, inputs, outputs):
        """`inputs`, `outputs`: float32 buffers, row-major NCHW, in the graph's order."""
        in_pointers, in_sizes, n_inputs, keep_in = _views(inputs)
        out_pointers, out_sizes, n_outputs, keep_out = _views(outputs)
        self.library.call("cs_session_run", self.handle, in_pointers, in_sizes, n_inputs, out_pointers,
                          out_sizes, n_outputs)
        del keep_in, keep_out

    def latency(self):
        us = ctypes.c_double()
        self.library.call("cs_session_latency", self.handle, ctypes.byref(us))
        return us.value

    def latency_b2b(self, n):
        us = ctypes.c_double()
        self.library.call("cs_session_latency_b2b", self.handle, n, ctypes.byref(us))
        return us.value

    def verify(self, level="sample"):
        result = Verification()
        self.library.call("cs_session_verify", self.handle, VERIFY[level], ctypes.byref(result))
        return result

    def info(self):
        return self.library.json("cs_session_info_json", self.handle)


class Pipeline(Handle):
    """Requests of a session's plan in flight, in `slots` slots. Keeps the session from being collected, which
    must not be closed before it."""
    destroy = "cs_pipeline_destroy"

    def __init__(self, session, slots):
        super().__init__(session.library)
        self.session, self.slots = session, slots
        self.library.call("cs_pipeline_create", session.handle, slots, ctypes.byref(self.handle))

    def submit(self, slot, inputs=None):
        """Begins a request; `inputs` as of Session.run, None: those that the slot had last."""
        pointers, sizes, count, keep = _views(inputs) if inputs is not None else (None, None, 0, None)
        self.library.call("cs_pipeline_submit", self.handle, slot, pointers, sizes, count)
        del keep

    def wait(self, slot, outputs=None):
        """Waits for the slot's request and fills `outputs`, if they are wanted."""
        pointers, sizes, count, keep = _views(outputs) if outputs is not None else (None, None, 0, None)
        self.library.call("cs_pipeline_wait", self.handle, slot, pointers, sizes, count)
        del keep

    def window(self, in_flight, requests, copies=True):
        """A PipelineRate of so many requests timed, so many of them in flight."""
        rate = PipelineRate()
        self.library.call("cs_pipeline_window", self.handle, in_flight, requests, ctypes.c_bool(copies),
                          ctypes.byref(rate))
        return rate

    def verify(self):
        """A PipelineCheck: every slot, all in flight, against the session alone."""
        check = PipelineCheck()
        self.library.call("cs_pipeline_verify", self.handle, ctypes.byref(check))
        return check

    def arena_bytes(self):
        return self.library.c.cs_pipeline_arena_bytes(self.handle)

    def how(self):
        return self.library.c.cs_pipeline_how(self.handle).decode()
