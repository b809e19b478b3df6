// wirecall: a view has no room of its own to decode into
#include "wirecall/reflect.hpp"

bool misuse(wirecall::Reader& reader, std::span<int>& out) { return wirecall::decode(reader, out); }
