# What an install holds: public headers under include/taper/, libtaper.so, and the package that find_package reads.
include(CMakePackageConfigHelpers)

foreach(folder IN ITEMS core allocator autograd nn optim data distributed serving)
  if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${folder})
    install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/taper FILES_MATCHING PATTERN "*.h"
      PATTERN "*_step.h" EXCLUDE PATTERN "stream_backend.h" EXCLUDE)  # what the columns alone share
  endif()
endforeach()
if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/torch_compat)
  install(DIRECTORY torch_compat DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/taper)
endif()
install(FILES taper.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/taper OPTIONAL)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(TARGET taper)
  install(TARGETS taper)
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Taper)
install(TARGETS taper_lib taper_torch_compat EXPORT TaperTargets)
install(EXPORT TaperTargets NAMESPACE Taper:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/TaperConfig.cmake.in
  ${PROJECT_BINARY_DIR}/TaperConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TaperConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TaperConfig.cmake ${PROJECT_BINARY_DIR}/TaperConfigVersion.cmake
  DESTINATION ${package_dir})

# The debuggers' scripts. gdb loads the one that is named after a library's full path by itself, below any folder of its
# auto-load-scripts-directory; a build tree has the line that does the same.
set(debugger_dir tools/debugger)
install(FILES ${debugger_dir}/taper_gdb.py ${debugger_dir}/taper_gdb_commands.py ${debugger_dir}/taper_lldb.py
  ${debugger_dir}/taper_memory.py ${debugger_dir}/taper_text.py DESTINATION ${CMAKE_INSTALL_DATADIR}/taper/debugger)
install(CODE "file(INSTALL TYPE FILE FILES \"${PROJECT_SOURCE_DIR}/${debugger_dir}/taper-gdb.py\"
  DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/gdb/auto-load\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}\"
  RENAME \"libtaper.so.${PROJECT_VERSION}-gdb.py\")")
file(WRITE ${PROJECT_BINARY_DIR}/gdbinit "source ${PROJECT_SOURCE_DIR}/${debugger_dir}/taper-gdb.py\n")
