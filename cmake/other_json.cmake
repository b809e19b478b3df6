# Which libraries of JSON values there are for include/wirecall/adapt: WIRECALL_HAS_RAPIDJSON, WIRECALL_HAS_BOOST_JSON.
# RapidJSON 1.1 does not compile with every compiler: clang 19 refuses an assignment in its document.h.
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_FLAGS "-std=c++23")
check_cxx_source_compiles("#include <rapidjson/document.h>
int main() { rapidjson::Document document; return document.IsNull() ? 0 : 1; }" WIRECALL_HAS_RAPIDJSON)
unset(CMAKE_REQUIRED_FLAGS)
find_path(WIRECALL_BOOST_JSON boost/json/src.hpp)
mark_as_advanced(WIRECALL_BOOST_JSON)
set(WIRECALL_HAS_BOOST_JSON OFF)
if(WIRECALL_BOOST_JSON)
  set(WIRECALL_HAS_BOOST_JSON ON)
endif()
