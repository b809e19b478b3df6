// System calls that fail, or do less than they are asked to, when a test says so, in the threads that it chooses; the
// kernel does all others. A seccomp filter has the kernel send SIGSYS in place of these calls, and the signal's handler
// answers for it, or makes the call after all: from the one place from where the filter lets it through. The filter is
// for the thread that asks for it and those it starts from then on, and for good: so a test does that on a thread of
// its own. What is to fail is said, and taken back, from any thread.
#pragma once

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

namespace wirecall::test {

#if defined(__x86_64__) && defined(__linux__)
inline constexpr bool kCallsCanFail = true;
#else
inline constexpr bool kCallsCanFail = false;
#endif

/// What becomes of a call.
struct Fault {
  static constexpr int kOneByte = 0;

  long call = -1;
  int error = kOneByte;  ///< or it transfers one byte and no more
  int skip = 0;          ///< so many of them go well before
  int times = 1;         ///< and so many do not
};

namespace failing_calls {

inline std::atomic<long> call{-1};
inline std::atomic<int> error{0};
inline std::atomic<int> skip{0};
inline std::atomic<int> left{0};
inline std::atomic<int> hits{0};

#if defined(__x86_64__) && defined(__linux__)

struct Arguments {
  long at[6];
};

// The result, or minus the errno; `*from` is where the filter sees the call come from.
[[gnu::noinline]] inline long let_through(long number, const Arguments& arguments, std::uintptr_t* from) {
  register long r10 asm("r10") = arguments.at[3];
  register long r8 asm("r8") = arguments.at[4];
  register long r9 asm("r9") = arguments.at[5];
  long result = number;
  std::uintptr_t here = 0;
  asm volatile("lea 1f(%%rip), %1\n\tsyscall\n1:"
               : "+a"(result), "=&b"(here)
               : "D"(arguments.at[0]), "S"(arguments.at[1]), "d"(arguments.at[2]), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  *from = here;
  return result;
}

// What the call is to give, when it is not to be made as it is.
inline bool fails(long number) {
  if (number != call.load()) return false;
  if (skip.fetch_sub(1) > 0 || left.fetch_sub(1) <= 0) return false;
  ++hits;
  return true;
}

inline void trapped(int, siginfo_t* info, void* context) {
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  Arguments arguments{{registers[REG_RDI], registers[REG_RSI], registers[REG_RDX], registers[REG_R10],
                       registers[REG_R8], registers[REG_R9]}};
  std::uintptr_t from = 0;
  if (fails(info->si_syscall)) {
    const int as = error.load();
    registers[REG_RAX] = -as;
    if (as != Fault::kOneByte) return;
    arguments.at[2] = 1;
  }
  registers[REG_RAX] = let_through(info->si_syscall, arguments, &from);
}

#endif

}  // namespace failing_calls

/// From now on `calls` of this thread fail when that is asked for.
inline void let_fail([[maybe_unused]] std::initializer_list<long> calls) {
#if defined(__x86_64__) && defined(__linux__)
  struct sigaction action{};
  action.sa_sigaction = &failing_calls::trapped;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  ::sigaction(SIGSYS, &action, nullptr);
  std::uintptr_t from = 0;
  failing_calls::let_through(SYS_getpid, {}, &from);

  constexpr unsigned kFrom = offsetof(seccomp_data, instruction_pointer);
  std::vector<sock_filter> program{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFrom),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(from), 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFrom + 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(from >> 32), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  for (const long call : calls) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{.len = static_cast<unsigned short>(program.size()), .filter = program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    std::perror("seccomp");
    ::_exit(3);
  }
#endif
}

/// While it is there, calls fail as it says. One at a time.
class Failing {
 public:
  explicit Failing(const Fault& fault) {
    failing_calls::hits = 0;
    failing_calls::error = fault.error;
    failing_calls::skip = fault.skip;
    failing_calls::left = fault.times;
    failing_calls::call = fault.call;
  }
  Failing(Failing&&) = delete;
  ~Failing() { failing_calls::call = -1; }
  /// How many have.
  [[nodiscard]] int hits() const { return failing_calls::hits; }
};

}  // namespace wirecall::test
