// See nats_library.hpp.
#include "nats/nats_library.hpp"

#include <dlfcn.h>
#include <stdexcept>

namespace wirecall::net {

// The interface that nats.h describes, by the versions that have it.
constexpr const char* kNames[]{"libnats.so.3.4", "libnats.so.3.5", "libnats.so.3.6", "libnats.so.3.7",
                               "libnats.so.3.8", "libnats.so.3.9", "libnats.so"};

// It is never unloaded: it has threads.
NatsLibrary::NatsLibrary() {
  void* library = nullptr;
  for (const char* const name : kNames) {
    if (library == nullptr) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) {
    throw std::runtime_error{
        "cluster: libnats is not installed, by which brokers are joined: install Debian's libnats3.4, or another "
        "3.4 to 3.9"};
  }
#define WIRECALL_NATS_LOAD(function)                                            \
  function = reinterpret_cast<decltype(function)>(::dlsym(library, #function)); \
  if (function == nullptr) throw std::runtime_error{"cluster: libnats has no " #function};
  WIRECALL_NATS_FUNCTIONS(WIRECALL_NATS_LOAD)
#undef WIRECALL_NATS_LOAD
}

const NatsLibrary& NatsLibrary::get() {
  static const NatsLibrary library;
  return library;
}

}  // namespace wirecall::net
