/* The shared library consists of the modules' archives. */
typedef int cs_empty_translation_unit;
