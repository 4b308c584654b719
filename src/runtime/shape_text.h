/* Shapes as text for messages. */
#ifndef CONVSCHED_RUNTIME_SHAPE_TEXT_H_
#define CONVSCHED_RUNTIME_SHAPE_TEXT_H_

#include "graph/op.h"

typedef struct cs_shape_text {
  char text[CS_MAX_RANK * 21 + 3];
} cs_shape_text;

/* "[1, 3, 224, 224]"; a symbolic batch is "N". */
cs_shape_text cs_shape_to_text(const cs_shape *shape);

#endif
