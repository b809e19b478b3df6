// Five functions called in another process by wirecall, with each encoding and transport, and by gRPC's synchronous API
// where the program was built with it: what a call takes, and what both processes compute for it beside the function
// itself. Lines of tab-separated values, which report.py makes a table and a plot of:
//     benchmark, system, nanoseconds a call, nanoseconds of processor a call less the function's own
// usage: bench_typed [seconds a measurement]
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "typed/system.hpp"

namespace {

using Clock = std::chrono::steady_clock;

struct Way {
  const char* name;
  const char* uri;  // of wirecall; null for gRPC
  const char* encoding;
};

constexpr Way kWays[] = {
    {"JSON, TCP", "tcp://127.0.0.1:0", "json"},
    {"MessagePack, TCP", "tcp://127.0.0.1:0", "msgpack"},
    {"CBOR, TCP", "tcp://127.0.0.1:0", "cbor"},
    {"protobuf, TCP", "tcp://127.0.0.1:0", "protobuf"},
    {"packed, TCP", "tcp://127.0.0.1:0", "packed"},
    {"JSON, unix", "unix:///tmp/bench-typed-%d.sock", "json"},
    {"MessagePack, unix", "unix:///tmp/bench-typed-%d.sock", "msgpack"},
    {"packed, unix", "unix:///tmp/bench-typed-%d.sock", "packed"},
    {"JSON, shm", "shm://bench-typed-%d", "json"},
    {"MessagePack, shm", "shm://bench-typed-%d", "msgpack"},
    {"packed, shm", "shm://bench-typed-%d", "packed"},
#ifdef WIRECALL_BENCH_GRPC
    {"gRPC", nullptr, nullptr},
#endif
};

double seconds_of(clockid_t clock) {
  timespec time{};
  if (::clock_gettime(clock, &time) != 0) std::abort();
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// This program again, as the server of one way; killed with this object.
class ServerProcess {
 public:
  explicit ServerProcess(std::size_t way) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(ends[1], STDOUT_FILENO);
      const std::string which = std::to_string(way);
      ::execl("/proc/self/exe", "bench_typed", "--serve", which.c_str(), nullptr);
      ::_exit(1);
    }
    ::close(ends[1]);
    for (char byte = 0; ::read(ends[0], &byte, 1) == 1 && byte != '\n';) endpoint_ += byte;
    ::close(ends[0]);
    if (endpoint_.empty() || ::clock_getcpuclockid(pid_, &clock_) != 0) std::abort();
  }
  ServerProcess(ServerProcess&&) = delete;
  ~ServerProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    if (endpoint_.starts_with("unix://")) ::unlink(endpoint_.c_str() + std::strlen("unix://"));
  }
  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }
  [[nodiscard]] double seconds() const { return seconds_of(clock_); }

 private:
  pid_t pid_;
  clockid_t clock_{};
  std::string endpoint_;
};

[[noreturn]] void serve(const Way& way) {
  const typed::Listening listening = [](const std::string& endpoint) {
    std::printf("%s\n", endpoint.c_str());
    std::fflush(stdout);
  };
#ifdef WIRECALL_BENCH_GRPC
  if (way.uri == nullptr) {
    typed::serve_grpc(listening);
    std::exit(0);
  }
#endif
  char uri[128];
  std::snprintf(uri, sizeof uri, way.uri, static_cast<int>(::getpid()));
  typed::serve_wirecall(uri, listening);
  std::exit(0);
}

std::unique_ptr<typed::System> connect(const Way& way, const std::string& endpoint) {
#ifdef WIRECALL_BENCH_GRPC
  if (way.uri == nullptr) return typed::call_grpc(endpoint);
#endif
  return typed::call_wirecall(endpoint, way.encoding);
}

// The function in this process.
class Direct final : public typed::System {
 public:
  std::uint64_t fibonacci(std::uint64_t n) override { return typed::fibonacci(n); }
  std::string hash_complex(const typed::ComplexObject& object) override { return typed::hash_complex(object); }
  double std_dev(const std::array<double, 10>& n) override {
    return typed::std_dev(n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9]);
  }
  double average_container(const std::vector<double>& values) override { return typed::average_container(values); }
  std::vector<std::uint64_t> gen_rand_ints(std::uint64_t min, std::uint64_t max, std::uint64_t count) override {
    return typed::gen_rand_ints(min, max, count);
  }
};

struct Benchmark {
  const char* name;
  std::function<void(typed::System&)> run;
};

void require(bool is, const char* what) {
  if (is) return;
  std::fprintf(stderr, "bench_typed: a wrong result of %s\n", what);
  std::exit(1);
}

std::vector<Benchmark> benchmarks() {
  const typed::ComplexObject object{.id = 24,
                                    .name = "Franklin D. Roosevelt",
                                    .flag1 = false,
                                    .flag2 = true,
                                    .vals = {0, 1, 4, 6, 7, 8, 11, 15, 17, 22, 25, 26}};
  const std::array<double, 10> ten{55.65,       125.325, 552.125, 12.767,   2599.6,
                                   1245.125663, 9783.49, 125.12,  553.3333, 2266.1};
  std::vector<double> values;
  for (int i = 0; i < 100; ++i) values.push_back(static_cast<double>(i * 7919 % 1009) / 8);
  return {
      {"Fibonacci", [](typed::System& s) { require(s.fibonacci(20) == 10946, "Fibonacci"); }},
      {"HashComplex", [object, expected = typed::hash_complex(object)](
                          typed::System& s) { require(s.hash_complex(object) == expected, "HashComplex"); }},
      {"StdDev",
       [ten, expected = Direct{}.std_dev(ten)](typed::System& s) { require(s.std_dev(ten) == expected, "StdDev"); }},
      {"AverageContainer",
       [values, expected = typed::average_container(values)](typed::System& s) {
         require(s.average_container(values) == expected, "AverageContainer");
       }},
      {"Sequential",
       [](typed::System& s) {
         std::vector<std::uint64_t> numbers = s.gen_rand_ints(5, 30, 1000);
         require(numbers.size() == 1000, "Sequential");
         for (std::uint64_t& number : numbers) number = s.fibonacci(number);
         require(s.average_container({numbers.begin(), numbers.end()}) > 1, "Sequential");
       }},
  };
}

struct Measured {
  double call_ns;
  double processor_ns;
};

// `other` is the processor time of the other end, in seconds.
Measured measure(const Benchmark& benchmark, typed::System& system, double seconds,
                 const std::function<double()>& other) {
  const Clock::time_point warm = Clock::now();
  do {
    benchmark.run(system);
  } while (std::chrono::duration<double>(Clock::now() - warm).count() < seconds / 5);
  const double before = seconds_of(CLOCK_PROCESS_CPUTIME_ID) + other();
  const Clock::time_point begin = Clock::now();
  double calls = 0;
  double took = 0;
  do {
    benchmark.run(system);
    ++calls;
    took = std::chrono::duration<double>(Clock::now() - begin).count();
  } while (took < seconds);
  return {took * 1e9 / calls, (seconds_of(CLOCK_PROCESS_CPUTIME_ID) + other() - before) * 1e9 / calls};
}

}  // namespace

int main(int count, char** words) {
  if (count == 3 && std::strcmp(words[1], "--serve") == 0) serve(kWays[std::atoi(words[2])]);
  const double seconds = count > 1 ? std::atof(words[1]) : 0.5;
  for (const Benchmark& benchmark : benchmarks()) {
    Direct direct;
    const Measured own = measure(benchmark, direct, seconds, [] { return 0.0; });
    std::printf("%s\tthe function itself\t%.0f\t0\n", benchmark.name, own.call_ns);
    for (std::size_t way = 0; way != std::size(kWays); ++way) {
      const ServerProcess server{way};
      const auto system = connect(kWays[way], server.endpoint());
      const Measured measured = measure(benchmark, *system, seconds, [&] { return server.seconds(); });
      std::printf("%s\t%s\t%.0f\t%.0f\n", benchmark.name, kWays[way].name, measured.call_ns,
                  measured.processor_ns - own.processor_ns);
      std::fflush(stdout);
    }
  }
}
