/* Graphs of the tests as text. */
#ifndef CONVSCHED_TESTS_MODULE_CONV_H_
#define CONVSCHED_TESTS_MODULE_CONV_H_

/* The JSON of a convolution and its Relu (`name`.relu), with a comma behind. */
#define MODULE_CONV(name, input, channels, kernel, pad)                                           \
  "{\"name\":\"" name "\",\"op\":\"Conv\",\"inputs\":[\"" input                                   \
  "\"],\"attrs\":{"                                                                               \
  "\"out_channels\":" channels ",\"kernel_shape\":[" kernel "," kernel "],\"pads\":[" pad "," pad \
  "," pad "," pad                                                                                 \
  "],\"bias\":true}},"                                                                            \
  "{\"name\":\"" name ".relu\",\"op\":\"Relu\",\"inputs\":[\"" name "\"]},"

#endif
