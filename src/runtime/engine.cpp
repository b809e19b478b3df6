// Chooses a backend (see backend.hpp, make_backend). Nothing is remembered between choices: a process may be forbidden
// later what it was allowed before.
#include "wirecall/engine.hpp"

#include <cerrno>
#include <system_error>

#include "runtime/backend.hpp"
#include "runtime/system.hpp"

namespace wirecall::runtime {

static std::string_view cure(int error) noexcept {
  switch (error) {
    case EPERM:
    case EACCES: return "likely seccomp, as containers have it, or the sysctl kernel.io_uring_disabled: allow it there";
    case ENOSYS: return "this kernel is built without it, or a filter hides it";
    case EINVAL:
    case EOPNOTSUPP: return "this kernel is older than Linux 6.1: a newer one has what is needed";
    case ENOMEM: return "the memory that may be locked is used up: raise the limit with ulimit -l";
    case EMFILE:
    case ENFILE: return cure_of_shortage(error);
    default: return "nothing is known to help";
  }
}

std::unique_ptr<Backend> make_backend(Engine engine, const LogSink& log) {
  if (engine == Engine::epoll || (engine == Engine::automatic && !kRingsAreFollowed)) return make_epoll_backend();
  try {
    return make_uring_backend();
  } catch (const std::system_error& refusal) {
    if (log) {
      std::string line{"io_uring refused: "};
      line.append(refusal.what()).append("; ").append(cure(refusal.code().value())).append("; using epoll");
      log(engine == Engine::uring ? LogLevel::warning : LogLevel::info, line);
    }
  }
  return make_epoll_backend();
}

}  // namespace wirecall::runtime
