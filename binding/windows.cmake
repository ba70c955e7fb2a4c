# Import library of Node's functions: on Windows, a library must state which module exports each imported symbol, here node.exe. cmake-js
# provides the list of symbols. Its flag for delayed loading is only for Microsoft's linker; the addon therefore requires a program that is
# called node.exe.
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
# Links the C++ library statically, because Node does not ship one. The addon is searched in build/Release.
target_link_options(gigpo PRIVATE -static)
set_target_properties(gigpo PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/$<CONFIG>)
