# The Debian package, of the preset `static`: no libraries to depend on. scripts/package writes it.
set(CPACK_PACKAGE_NAME shardplan)
# Whoever distributes the package sets its own address.
set(CPACK_PACKAGE_CONTACT "Shardplan maintainers <shardplan@example.org>" CACHE STRING "Maintainer of the Debian package")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "planner of transformer training and serving on accelerators")
set(CPACK_PACKAGE_DESCRIPTION "Given a model and a cluster, Shardplan predicts time, memory and
 traffic of a parallel plan, searches for the best plan, and says how
 far the prediction may be trusted.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL Unspecified debian)  # without the texts of other packages
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_STRIP_FILES ON)
include(CPack)

# What Debian wants otherwise than an archive has it: a licence by reference, and its own form of changes, with the date of the
# newest commit, so that equal sources are equal bytes.
execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} log -1 --format=%cD
  OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT date)
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
endif()
set(debian ${PROJECT_SOURCE_DIR}/scripts/debian)
set(packed ${PROJECT_BINARY_DIR}/documents/changelog.Debian.gz)
add_custom_command(OUTPUT ${packed} DEPENDS ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${debian}/changelog.awk VERBATIM
  COMMAND sh -c "awk -v 'maintainer=${CPACK_PACKAGE_CONTACT}' -v 'date=${date}' -f '${debian}/changelog.awk' \
'${PROJECT_SOURCE_DIR}/CHANGELOG.md' | gzip -9nc >'${packed}'")
add_custom_target(debian ALL DEPENDS ${packed})
install(FILES ${packed} DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME changelog.gz COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES ${debian}/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES ${debian}/overrides DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides RENAME shardplan
  COMPONENT debian EXCLUDE_FROM_ALL)
