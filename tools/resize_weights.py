"""Resize along one axis as a matrix: ONNX's formulas, written from its specification, in NumPy."""
import numpy


def original_place(attrs, axis, extent, scale, i):
    """Where output index i lies in an axis of `extent` elements."""
    mode, length, size = attrs["coordinate_transformation_mode"], scale * extent, attrs["sizes"][axis]
    if mode == "asymmetric":
        return i / scale
    if mode == "tf_half_pixel_for_nn":
        return (i + 0.5) / scale
    if mode == "align_corners":
        return 0.0 if length == 1 else i * (extent - 1) / (length - 1)
    if mode == "tf_crop_and_resize":
        begin, end = attrs["roi"][axis] * (extent - 1), attrs["roi"][2 + axis] * (extent - 1)
        return (begin + end) / 2 if length == 1 else begin + i * (end - begin) / (length - 1)
    if mode == "pytorch_half_pixel" and length == 1:
        return -0.5
    place = (i + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        place += extent / 2 * (1 - size / length)
    return place


def cubic(a, distance):
    d = abs(distance)
    if d <= 1:
        return (a + 2) * d ** 3 - (a + 3) * d ** 2 + 1
    return a * d ** 3 - 5 * a * d ** 2 + 8 * a * d - 4 * a if d < 2 else 0.0


ROUNDED = {"floor": numpy.floor, "ceil": numpy.ceil,
           "round_prefer_floor": lambda x: numpy.ceil(x - 0.5),
           "round_prefer_ceil": lambda x: numpy.floor(x + 0.5)}


def linear(distance):
    return max(1 - abs(distance), 0.0)


def widened(attrs, place, scale):
    """{index: weight} by the filter of an axis that shrinks by `scale`, stretched by 1 / scale."""
    reach = (1 if attrs["mode"] == "linear" else 2) / scale
    near = range(int(numpy.floor(place - reach)), int(numpy.ceil(place + reach)) + 1)
    value = linear if attrs["mode"] == "linear" else lambda d: cubic(attrs["cubic_coeff_a"], d)
    found = {i: value(scale * (i - place)) for i in near}
    total = sum(found.values())
    return {i: weight / total for i, weight in found.items()}


def neighbours(attrs, place, scale):
    """{index: weight}, indices outside of the axis among them."""
    if attrs["antialias"] and scale < 1 and attrs["mode"] != "nearest":
        return widened(attrs, place, scale)
    if attrs["mode"] == "nearest":
        return {int(ROUNDED[attrs["nearest_mode"]](place)): 1.0}
    below = int(numpy.floor(place))
    if attrs["mode"] == "linear":
        return {below: 1 - (place - below), below + 1: place - below}
    return {i: cubic(attrs["cubic_coeff_a"], place - i) for i in range(below - 1, below + 3)}


def resize_weights(attrs, axis, extent, scale):
    """[output, extent + 1]: the weights of the input's elements, and at the end that of the extrapolation value."""
    matrix = numpy.zeros((attrs["sizes"][axis], extent + 1))
    for i, row in enumerate(matrix):
        place = original_place(attrs, axis, extent, scale, i)
        if attrs["coordinate_transformation_mode"] == "tf_crop_and_resize" and not 0 <= place <= extent - 1:
            row[extent] = 1
            continue
        found = neighbours(attrs, place, scale)
        if attrs["exclude_outside"]:
            inside = {j: weight for j, weight in found.items() if 0 <= j < extent}
            total = sum(inside.values())
            found = {j: weight / total for j, weight in inside.items()}
        for j, weight in found.items():
            row[min(max(j, 0), extent - 1)] += weight
    return matrix
