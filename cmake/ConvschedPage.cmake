# Style and script of a report's page, built into cs_report, so that the command is all there is to install.
set(cs_page_texts ${PROJECT_SOURCE_DIR}/src/report/page.css ${PROJECT_SOURCE_DIR}/src/report/page.js)
set(cs_page_code ${PROJECT_BINARY_DIR}/generated/page_texts.c)
list(JOIN cs_page_texts "," cs_page_list)
add_custom_command(OUTPUT ${cs_page_code} DEPENDS ${cs_page_texts} ${PROJECT_SOURCE_DIR}/cmake/EmbedTexts.cmake
                   COMMAND ${CMAKE_COMMAND} -DOUT=${cs_page_code} "-DTEXTS=${cs_page_list}"
                           -P ${PROJECT_SOURCE_DIR}/cmake/EmbedTexts.cmake VERBATIM)
target_sources(cs_report PRIVATE ${cs_page_code})
