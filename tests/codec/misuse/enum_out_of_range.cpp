// wirecall: no enumerator between -128 and 255 was found; specialise wirecall::EnumNames
#include "wirecall/reflect.hpp"

enum class Port { http = 8080 };
auto misuse() { return wirecall::to_json(Port::http); }
