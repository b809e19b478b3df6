// What protobuf costs: a message read and written as JSON, beside protobuf's own json_util; and an echo by co_await,
// 100 in flight on one connection, beside gRPC's asynchronous API where the program was built with it. Server and
// client are in this program, a thread each.
//     bench_protobuf [seconds]
#include "wirecall/protobuf.hpp"

#include <cstdio>
#include <cstdlib>
#include <google/protobuf/util/json_util.h>
#include <string>
#include <thread>
#include <vector>

#include "echo.pb.h"
#include "protobuf/measured.hpp"
#include "wirecall/server.hpp"
#include "wirecall/task.hpp"

namespace {

using namespace wirecall;
using Clock = std::chrono::steady_clock;

// Nanoseconds of one.
template <class F>
double each_ns(double seconds, const F& act) {
  for (int i = 0; i < 1000; ++i) act();
  const Clock::time_point begin = Clock::now();
  std::uint64_t count = 0;
  while (bench::seconds_since(begin) < seconds) {
    for (int i = 0; i < 100; ++i) act();
    count += 100;
  }
  return bench::seconds_since(begin) * 1e9 / static_cast<double>(count);
}

template <class M>
void compare(const char* name, const M& message, double seconds) {
  Buffer text;
  const auto writer = json_codec().writer();
  const auto reader = json_codec().reader();
  const double write_ns = each_ns(seconds, [&] {
    text.clear();
    writer->reset(text);
    protobuf::write(*writer, message);
  });
  M back;
  const std::string_view view = text.padded();
  const double read_ns = each_ns(seconds, [&] {
    if (json_codec().scan(view, 256).status != ScanStatus::complete) std::abort();
    reader->reset(view);
    if (!protobuf::read(*reader, back)) std::abort();
  });
  std::string theirs;
  const double their_write_ns = each_ns(seconds, [&] {
    theirs.clear();
    if (!google::protobuf::util::MessageToJsonString(message, &theirs).ok()) std::abort();
  });
  const double their_read_ns = each_ns(seconds, [&] {
    back.Clear();
    if (!google::protobuf::util::JsonStringToMessage(theirs, &back).ok()) std::abort();
  });
  std::printf("%-24s %5zu bytes %10.0f %10.0f %12.0f %12.0f\n", name, view.size(), write_ns, read_ns, their_write_ns,
              their_read_ns);
}

bench::Order order() {
  bench::Order order;
  order.set_id(1'234'567'890'123);
  order.set_customer("Ada Lovelace");
  for (int i = 0; i < 8; ++i) {
    auto& line = *order.add_lines();
    line.set_item("item number " + std::to_string(i));
    line.set_count(i + 1);
    line.set_price(9.95 * (i + 1));
  }
  (*order.mutable_labels())["region"] = "eu-west";
  (*order.mutable_labels())["tier"] = "gold";
  return order;
}

struct Callers {
  Task<void> awaiting() {
    while (!over) {
      const auto response = co_await channel.call<bench::EchoResponse>(method, request);
      if (response.response() != request.message()) std::abort();
      over = over || (++calls % 64 == 0 && bench::seconds_since(begin) >= seconds);
    }
  }

  protobuf::Channel channel;
  std::string method;
  double seconds;
  bench::EchoRequest request;
  Clock::time_point begin = Clock::now();
  std::uint64_t calls = 0;
  bool over = false;
};

bench::Measured measure(Encoding encoding, protobuf::ChannelOptions how, double seconds) {
  Server server;
  protobuf::Service service{server, "bench.EchoService"};
  service.method("Echo", [](const bench::EchoRequest& request) {
    bench::EchoResponse response;
    response.set_response(request.message());
    return response;
  });
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  std::thread serving{[&] { server.run(); }};
  ClientOptions options;
  options.encoding = encoding;
  Client client{endpoint.uri(), options};
  Callers callers{protobuf::Channel{client, how}, "bench.EchoService.Echo", seconds, {}};
  callers.request.set_message("hello, world");
  std::vector<Task<void>> tasks;
  for (int i = 0; i < bench::kInFlight; ++i) tasks.push_back(callers.awaiting());
  callers.begin = Clock::now();
  const double cpu = bench::process_seconds();
  client.run(when_all(std::move(tasks)));
  const auto calls = static_cast<double>(callers.calls);
  const bench::Measured measured{calls / bench::seconds_since(callers.begin),
                                 (bench::process_seconds() - cpu) * 1e9 / calls};
  client.close();
  server.stop();
  serving.join();
  return measured;
}

void print(const char* name, const bench::Measured& measured) {
  std::printf("%-36s %10.0f %16.0f\n", name, measured.rate, measured.cpu_ns);
}

}  // namespace

int main(int count, char** words) {
  const double seconds = count > 1 ? std::atof(words[1]) : 1;
  std::printf("%-36s %10s %10s %12s %12s\n", "ns of one message as JSON", "write", "read", "json_util", "");
  bench::EchoRequest request;
  request.set_message("hello, world");
  compare("echo", request, seconds / 4);
  compare("order of 8 lines", order(), seconds / 4);

  std::printf("\n%-36s %10s %16s\n", "echo, 100 in flight, one connection", "calls/s", "ns of processor");
  print("wirecall, JSON, co_await", measure(Encoding::json, {}, seconds));
  print("wirecall, MessagePack, co_await", measure(Encoding::msgpack, {}, seconds));
  print("the same, as the messages' own bytes", measure(Encoding::msgpack, {.as_bytes = true}, seconds));
#ifdef WIRECALL_BENCH_GRPC
  print("gRPC, asynchronous", bench::measure_grpc(seconds));
#endif
}
