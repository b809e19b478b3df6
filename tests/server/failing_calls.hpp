// System calls that fail, or transfer one byte, when a test requests it, on the threads that it chooses; the kernel
// performs all others. A seccomp filter has the kernel send SIGSYS in place of these calls. The signal's handler
// answers in its stead, or performs the call from the one address that the filter lets through. The filter applies for
// good to the thread that installs it and the threads that it starts later: so a test installs it on a thread of its
// own. Any thread can set and clear the fault.
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

/// A fault of one system call.
struct Fault {
  static constexpr int kOneByte = 0;

  long call = -1;
  int error = kOneByte;  ///< or the call transfers one byte
  int skip = 0;          ///< this many succeed before
  int times = 1;         ///< and this many do not
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

// The result, or minus the errno; `*from` is the address of the call as the filter sees it.
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

// Whether the call is to fail instead of being made.
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

/// From now on `calls` of this thread can fail.
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

/// During its lifetime calls fail as it says. One at a time.
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
  /// How many have failed.
  [[nodiscard]] int hits() const { return failing_calls::hits; }
};

}  // namespace wirecall::test
