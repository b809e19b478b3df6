// What is measured of an echo: by wirecall in protobuf.cpp, by gRPC in grpc_echo.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>

namespace bench {

inline constexpr int kInFlight = 100;

struct Measured {
  double rate = 0;    ///< calls a second
  double cpu_ns = 0;  ///< of both ends together, a call
};

/// Of the whole process.
inline double process_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}
inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// gRPC's asynchronous API, server and client, kInFlight calls over one channel.
Measured measure_grpc(double seconds);

}  // namespace bench
