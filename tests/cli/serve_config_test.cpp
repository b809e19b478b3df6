// `wirecall serve -c`: the options that a server has of its file and of the flags over it, as a user sees them.
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <signal.h>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cli/process.hpp"
#include "tests/connection/peer.hpp"
#include "tests/server/folder.hpp"
#include "wirecall/endpoint.hpp"

namespace wirecall::cli {
namespace {

struct Ended {
  int status;
  std::string output;
  std::string error;
};

class ServeConfigTest : public testing::Test {
 protected:
  std::string file(std::string_view text) {
    const std::string path = folder_.path + "/wirecall.toml";
    std::ofstream{path, std::ios::binary} << text;
    return path;
  }
  static Ended serve(std::vector<std::string> words) {
    words.insert(words.begin(), "serve");
    Process process{std::move(words)};
    Ended ended{};
    ended.output = process.rest_of_output();
    ended.error = process.rest_of_error();
    ended.status = process.wait();
    return ended;
  }
  std::string printed(std::vector<std::string> words) {
    words.emplace_back("--print-config");
    const Ended ended = serve(std::move(words));
    EXPECT_EQ(ended.status, 0) << ended.error;
    EXPECT_EQ(ended.error, "");
    return ended.output;
  }

  net::Folder folder_;
};

TEST_F(ServeConfigTest, a_server_listens_where_its_file_says) {
  Process server{{"serve", "-c", file("listen = ['" + folder_.socket() + "']\n")}};
  EXPECT_NE(server.read_error_until("nc -q1").find(folder_.socket()), std::string::npos);
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
}

TEST_F(ServeConfigTest, flags_go_over_the_file) {
  const std::string path = file("port = 1\nlog_level = 'error'\n[limits]\nbatch = 2\n");
  const std::string text = printed({"-c", path, "--port", "3", "--limits-batch", "4"});
  EXPECT_NE(text.find("\nport = 3\n"), std::string::npos);
  EXPECT_NE(text.find("\nbatch = 4\n"), std::string::npos);
  EXPECT_NE(text.find("\nlog_level = \"error\"\n"), std::string::npos);
}

TEST_F(ServeConfigTest, a_port_on_the_command_line_goes_over_the_endpoints_of_the_file) {
  const std::string path = file("listen = ['unix:/nowhere']\n");
  EXPECT_NE(printed({"-c", path}).find("\nlisten = [\"unix:/nowhere\"]\n"), std::string::npos);
  EXPECT_NE(printed({"-c", path, "--port", "3"}).find("\nlisten = []\n"), std::string::npos);
}

TEST_F(ServeConfigTest, what_is_printed_is_a_file_that_gives_the_same) {
  const std::string all = printed({"--port", "1234", "--delimiter", "\x01|\x7F", "--cpu-affinity", "0"});
  EXPECT_EQ(printed({"-c", file(all)}), all);
}

TEST_F(ServeConfigTest, a_wrong_file_is_one_message_and_status_two) {
  const std::string path = file("port = 70000\n[limits]\nbach = 1\n");
  const Ended ended = serve({"-c", path});
  EXPECT_EQ(ended.status, 2);
  EXPECT_EQ(ended.output, "");
  EXPECT_EQ(ended.error, "wirecall: " + path +
                             ": line 1: port is 70000: give a number from 0 to 65535; line 3: there is no option "
                             "limits.bach; did you mean limits.batch?\n");
}

TEST_F(ServeConfigTest, a_file_that_cannot_be_read_is_named_with_the_reason) {
  for (const std::string& path : {folder_.path, folder_.path + "/none", std::string{"/dev/zero"}}) {
    const Ended ended = serve({"-c", path});
    EXPECT_EQ(ended.status, 2);
    EXPECT_NE(ended.error.find("file " + path), std::string::npos) << ended.error;
  }
}

/// A server that listens at a socket file and has its options of a file.
class ReloadTest : public ServeConfigTest {
 protected:
  std::string file_of(std::string_view rest) {
    return file("listen = ['" + folder_.socket() + "']\n" + std::string{rest});
  }
  /// Says so and waits for what it is answered with, up to the end of the line that has `end`.
  std::string hang_up(std::string_view end) {
    server_.signal(SIGHUP);
    const std::string text = server_.read_error_until(end);
    EXPECT_NE(text.find(end), std::string::npos) << text;
    return text;
  }

  Process server_{{"serve", "-c", file_of("[limits]\nbatch = 7\n"), "--limits-depth", "9"}};
};

TEST_F(ReloadTest, sighup_takes_limits_and_the_level_of_the_log_and_says_what_changed) {
  server_.read_error_until("nc -q1");
  net::RawPeer peer{Endpoint{folder_.socket()}};
  const std::string batch =
      R"([{"jsonrpc":"2.0","method":"rpc.ping","id":1},{"jsonrpc":"2.0","method":"rpc.ping","id":2}])"
      "\n";
  peer.send(batch);
  EXPECT_EQ(peer.line().find("error"), std::string::npos);

  file_of("log_level = 'warning'\n[limits]\nbatch = 1\ndepth = 5\n");
  const std::string text = hang_up("the configuration is in force");
  EXPECT_NE(text.find("info an option has another value option=limits.batch was=7 is=1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("option=log_level was=\"\\\"info\\\"\" is=\"\\\"warning\\\"\"\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("option=limits.depth"), std::string::npos) << "a flag goes over it: " << text;
  peer.send(batch);
  EXPECT_NE(peer.line().find("\"limit\":\"batch\""), std::string::npos);
}

TEST_F(ReloadTest, sighup_says_what_needs_a_restart_each_time) {
  server_.read_error_until("nc -q1");
  file_of("thread_count = 2\nengine = 'epoll'\n[limits]\nbatch = 7\n");
  for (int time = 1; time <= 2; ++time) {
    server_.signal(SIGHUP);
    const std::string text = server_.read_error_until("in force changed=0 need_restart=2\n", time);
    EXPECT_NE(text.find("restart option=thread_count is=1 configured=2\n"), std::string::npos) << text;
    EXPECT_NE(text.find("restart option=engine is="), std::string::npos) << text;
  }
}

TEST_F(ReloadTest, a_wrong_file_is_refused_as_a_whole_with_the_line_and_the_next_one_is_taken) {
  server_.read_error_until("nc -q1");
  const std::string path = file_of("\nlog_level = 'debug'\nprot = 1\n");
  const std::string text = hang_up("prot; did you mean port?");
  EXPECT_NE(text.find("error the configuration is refused as a whole"), std::string::npos) << text;
  EXPECT_NE(text.find(path + ": line 4: there is no option prot"), std::string::npos) << text;
  EXPECT_EQ(text.find("an option"), std::string::npos) << text;
  file_of("[limits]\nbatch = 8\n");
  EXPECT_NE(hang_up("in force changed=1").find("option=limits.batch was=7 is=8"), std::string::npos);
  std::filesystem::remove(path);
  hang_up("cannot read the file");
  server_.signal(SIGTERM);
  EXPECT_EQ(server_.wait(), 0);
}

TEST_F(ReloadTest, hang_ups_while_the_server_ends_do_no_harm) {
  server_.read_error_until("nc -q1");
  for (int i = 0; i < 50; ++i) server_.signal(SIGHUP);
  server_.signal(SIGTERM);
  EXPECT_EQ(server_.wait(), 0);
}

TEST_F(ServeConfigTest, sighup_takes_principals_anew_and_no_line_of_the_log_shows_a_token) {
  const std::string path = folder_.path + "/principals.json";
  const auto know = [&](const std::string& token) {
    std::ofstream{path} << R"([{"name": "robot", "call": [">"], "tokens": [")" + token + R"("]}])";
  };
  const auto call = [&](const std::string& token) {
    Process caller{{"call", "rpc.methods", "--token", token, "--url", folder_.socket()}};
    return caller.wait();
  };
  know("first-secret");
  Process server{{"serve", "--listen", folder_.socket(), "--principals-file", path}};
  server.read_error_until("nc -q1");
  EXPECT_EQ(call("first-secret"), 0);
  know("second-secret");
  server.signal(SIGHUP);
  server.read_error_until("the configuration is in force changed=1");
  EXPECT_NE(server.read_error_until("the principals are others, or may do other things principals=1").size(), 0U);
  EXPECT_NE(call("first-secret"), 0);
  EXPECT_EQ(call("second-secret"), 0);
  std::ofstream{path} << "[{\"tokens\": [\"third-secret\"]";
  server.signal(SIGHUP);
  server.read_error_until("refused as a whole");
  EXPECT_EQ(call("second-secret"), 0);
  server.signal(SIGTERM);
  EXPECT_EQ(server.rest_of_error().find("secret"), std::string::npos) << server.rest_of_error();
  EXPECT_EQ(server.wait(), 0);
}

TEST_F(ServeConfigTest, a_file_that_cannot_be_read_is_told_with_the_reason) {
  const std::string none = folder_.path + "/none";
  EXPECT_EQ(serve({"-c", none}).error, "wirecall: cannot read the file " + none + ": No such file or directory\n");
  EXPECT_EQ(serve({"--port", "0", "--principals-file", none}).error,
            "wirecall: principals_file: " + none + " cannot be read: No such file or directory\n");
  EXPECT_EQ(serve({"--port", "0", "--principals-file", folder_.path}).error,
            "wirecall: principals_file: " + folder_.path + " cannot be read: Is a directory\n");
}

TEST_F(ServeConfigTest, what_is_wrong_with_principals_together_names_their_file) {
  const std::string principals = folder_.path + "/principals.json";
  std::ofstream{principals} << R"([{"name":"a","tokens":["secret"]},{"name":"b","tokens":["secret"]}])";
  const Ended ended = serve({"--port", "0", "--principals-file", principals});
  EXPECT_EQ(ended.error, "wirecall: principals_file: " + principals + ": a token of b is another's, or there twice\n");
  EXPECT_EQ(ended.status, 2);
}

TEST_F(ServeConfigTest, a_principals_file_that_is_not_named_any_more_needs_a_restart_and_is_not_read) {
  const std::string principals = folder_.path + "/principals.json";
  std::ofstream{principals} << R"([{"name": "robot", "call": [">"], "tokens": ["secret"]}])";
  const std::string config = folder_.path + "/serve.toml";
  const std::string listen = "listen = [\"" + folder_.socket() + "\"]\n";
  std::ofstream{config} << listen << "principals_file = \"" << principals << "\"\n";
  Process server{{"serve", "-c", config}};
  server.read_error_until("nc -q1");
  std::ofstream{principals} << "[]";
  std::ofstream{config} << listen;
  server.signal(SIGHUP);
  EXPECT_NE(
      server.read_error_until("the configuration is in force").find("that needs a restart option=principals_file"),
      std::string::npos)
      << server.read_error_until("the configuration is in force");
  Process caller{{"call", "rpc.methods", "--token", "secret", "--url", folder_.socket()}};
  EXPECT_EQ(caller.wait(), 0) << "those in force stay";
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
}

TEST(ServeWithoutAFile, ends_at_a_hang_up) {
  Process server{{"serve", "--port", "0"}};
  server.read_error_until("nc -q1");
  server.signal(SIGHUP);
  EXPECT_EQ(server.wait(), -SIGHUP);
}

TEST_F(ServeConfigTest, where_the_log_is_json_so_is_what_tells_where_the_server_listens) {
  Process server{{"serve", "--demo", "--listen", folder_.socket(), "--log-format", "json"}};
  const std::string line = server.read_error_until("\n");
  EXPECT_TRUE(line.starts_with("{\"time\":")) << line;
  EXPECT_NE(line.find("\"message\":\"the server listens\""), std::string::npos) << line;
  EXPECT_NE(line.find("\"listen\":\"" + folder_.socket() + "\""), std::string::npos) << line;
  EXPECT_NE(line.find("\"serves\":\"whoever can connect\""), std::string::npos) << line;
  server.signal(SIGTERM);
  EXPECT_EQ(server.rest_of_error(), line) << "nothing else is said, and all of it is JSON";
}

TEST_F(ServeConfigTest, calls_are_logged_where_that_is_wanted_by_a_flag_alone) {
  Process server{{"serve", "--demo", "--log-calls", "--port", "0"}};
  const std::string url = "127.0.0.1:" + std::to_string(port_of(server));
  EXPECT_EQ(run({"call", "echo", "1", "--url", url}).output, "1\n");
  const std::string line = server.read_error_until("a call is answered");
  EXPECT_NE(line.find("a call is answered"), std::string::npos) << line;
  EXPECT_NE(printed({"--log-calls"}).find("\nlog_calls = true\n"), std::string::npos);
  EXPECT_NE(printed({"--log-calls", "false"}).find("\nlog_calls = false\n"), std::string::npos);
  EXPECT_NE(printed({}).find("\nlog_calls = false\n"), std::string::npos);
}

class Guarded : public ServeConfigTest {
 protected:
  static std::vector<std::string> flags(const std::string& path) {
    std::ofstream{path} << R"([{"name": "robot", "call": [">"], "tokens": ["secret"]}])";
    return {"serve", "--demo", "--port", "0", "--principals-file", path};
  }
  Process server_{flags(folder_.path + "/principals.json")};
  const std::string authority_ = "127.0.0.1:" + std::to_string(port_of(server_));
};

TEST_F(Guarded, who_shows_no_token_is_told_how_to_show_one) {
  for (const std::string& url : {"tcp://" + authority_, "http://" + authority_}) {
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"call", "echo", "1"}, {"bench", "echo", "1", "-z", "30s"}}) {
      for (const std::vector<std::string>& token : {std::vector<std::string>{}, {"--token", "another"}}) {
        std::vector<std::string> all = words;
        all.insert(all.end(), {"--url", url});
        all.insert(all.end(), token.begin(), token.end());
        const cli::Ended ended = run(all);
        EXPECT_NE(ended.status, 0);
        EXPECT_NE(ended.error.find("--token"), std::string::npos) << ended.error;
        EXPECT_NE(ended.error.find("$WIRECALL_TOKEN"), std::string::npos) << ended.error;
        EXPECT_EQ(ended.error.find("secret"), std::string::npos);
        EXPECT_EQ(ended.error.find("another"), std::string::npos);
      }
    }
  }
  EXPECT_EQ(run({"call", "echo", "1", "--url", authority_, "--token", "secret"}).output, "1\n");
  const cli::Ended bench = run({"bench", "echo", "1", "-z", "30s", "--url", authority_});
  EXPECT_NE(bench.error.find("unauthenticated"), std::string::npos) << bench.error;
}

}  // namespace
}  // namespace wirecall::cli
