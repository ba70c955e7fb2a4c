# Node's functions on Windows, where a library must name who has what it calls: node.exe. cmake-js tells where the list of them is. Its
# flag for delayed loading is the Microsoft linker's alone; the addon loads in a program that is called node.exe.
string(REPLACE "/DELAYLOAD:NODE.EXE" "" CMAKE_SHARED_LINKER_FLAGS "${CMAKE_SHARED_LINKER_FLAGS}")
if(NOT CMAKE_DLLTOOL)
  find_program(CMAKE_DLLTOOL NAMES dlltool llvm-dlltool REQUIRED)
endif()
set(node_library ${CMAKE_BINARY_DIR}/libnode.a)
add_custom_command(OUTPUT ${node_library} DEPENDS ${CMAKE_JS_NODELIB_DEF}
  COMMAND ${CMAKE_DLLTOOL} -d ${CMAKE_JS_NODELIB_DEF} -D node.exe -l ${node_library} VERBATIM)
add_custom_target(node_library DEPENDS ${node_library})
add_dependencies(gigpo node_library)
target_link_libraries(gigpo PRIVATE ${node_library})
# The C++ library comes along, since Node's folder has none. Where the addon is looked for: build/Release.
target_link_options(gigpo PRIVATE -static)
set_target_properties(gigpo PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/$<CONFIG>)
