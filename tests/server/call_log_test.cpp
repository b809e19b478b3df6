// One record a call where that is wanted.
#include "server/call_log.hpp"

#include <gtest/gtest.h>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/connection/peer.hpp"
#include "wirecall/error.hpp"
#include "wirecall/log.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/server.hpp"
#include "wirecall/stream.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

class CallLog : public testing::Test {
 protected:
  CallLog() {
    registry.method("add", [](int a, int b) { return a + b; });
    registry.method("fail", []() -> int { throw Error{7, "no"}; });
    registry.use(call_log(sink.at_least(LogLevel::info)));
  }
  // What is written of the text, each without its time and without the number of microseconds.
  std::vector<std::string> of(std::string_view text) {
    static_cast<void>(registry.handle(text));
    std::vector<std::string> lines = std::exchange(written, {});
    for (std::string& line : lines) {
      line.erase(0, line.find(' ') + 1);
      const std::size_t begin = line.find("us=") + 3;
      EXPECT_GE(std::stoll(line.substr(begin)), 0) << line;
      line.replace(begin, line.find(' ', begin) - begin, "N");
    }
    return lines;
  }

  std::vector<std::string> written;
  LogSink sink{[this](const LogRecord& record) { written.push_back(format_log(LogFormat::human, record)); }};
  Registry registry;
};

using Lines = std::vector<std::string>;

TEST_F(CallLog, tells_each_call_with_its_outcome) {
  EXPECT_EQ(of(R"({"jsonrpc":"2.0","method":"add","params":[1,2],"id":1})"),
            Lines{"info a call is answered method=add client=\"\" principal=\"\" us=N outcome=result code=0"});
  EXPECT_EQ(of(R"({"jsonrpc":"2.0","method":"fail","id":1})"),
            Lines{"info a call is answered method=fail client=\"\" principal=\"\" us=N outcome=error code=7"});
  EXPECT_EQ(of(R"({"jsonrpc":"2.0","method":"add","params":["secret",2],"id":1})"),
            Lines{"info a call is answered method=add client=\"\" principal=\"\" us=N outcome=error code=-32602"});
  EXPECT_EQ(of(R"({"jsonrpc":"2.0","method":"add","params":[1,2]})"),
            Lines{"info a call is answered method=add client=\"\" principal=\"\" us=N outcome=notification code=0"});
}

TEST_F(CallLog, tells_each_element_of_a_batch) {
  EXPECT_EQ(
      of(R"([{"jsonrpc":"2.0","method":"add","params":[1,2],"id":1},{"jsonrpc":"2.0","method":"fail","id":2}])").size(),
      2U);
}

TEST_F(CallLog, has_no_line_of_what_is_no_call_of_a_method) {
  EXPECT_EQ(of(R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})"), Lines{});
  EXPECT_EQ(of(R"({"jsonrpc":"2.0","method":"none","id":1})"), Lines{});
}

TEST(CallLogOfAServer, tells_calls_of_unknown_methods_too) {
  std::mutex mutex;
  std::vector<std::string> lines;
  Options options;
  options.thread_count = 1;
  options.log_calls = true;
  options.log = [&](const LogRecord& record) {
    const std::string line = format_log(LogFormat::human, record);
    const std::scoped_lock lock{mutex};
    lines.push_back(line.substr(line.find(' ') + 1));
  };
  Server server{options};
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  RawPeer peer{endpoint};
  peer.send("{\"jsonrpc\":\"2.0\",\"method\":\"none\",\"id\":1}\n");
  EXPECT_TRUE(peer.line().contains("-32601"));
  const std::scoped_lock lock{mutex};
  EXPECT_EQ(lines, Lines{"info a call is answered method=none client=\"\" principal=\"\" us=0 outcome=error "
                         "code=-32601"});
}

}  // namespace
}  // namespace wirecall::net
