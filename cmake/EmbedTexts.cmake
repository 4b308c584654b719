# Writes OUT, a C file with each of TEXTS (files, separated by commas) as an array of characters that ends in a 0:
# page.css becomes cs_page_css. ASCII alone.
string(REPLACE "," ";" texts "${TEXTS}")
set(code "/* Made by cmake/EmbedTexts.cmake. */\n")
foreach(text ${texts})
  get_filename_component(name ${text} NAME)
  string(REPLACE "." "_" name ${name})
  file(READ ${text} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "(0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],)" "\\1\n"
         bytes "${bytes}")
  string(APPEND code "extern const char cs_${name}[];\nconst char cs_${name}[] = {\n${bytes}0};\n")
endforeach()
file(WRITE ${OUT} "${code}")
