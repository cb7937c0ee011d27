# The Debian package, of the preset `static`: no libraries to depend on. scripts/package writes it.
set(CPACK_PACKAGE_NAME shardplan)
set(CPACK_PACKAGE_CONTACT "Shardplan maintainers <maintainers@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "planner of transformer training and serving on accelerators")
set(CPACK_PACKAGE_DESCRIPTION "Given a model and a cluster, Shardplan predicts time, memory and
 traffic of a parallel plan, searches for the best plan, and says how
 far the prediction may be trusted.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL Unspecified)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_STRIP_FILES ON)
include(CPack)
