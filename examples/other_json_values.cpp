// JSON values of other libraries as parameters, results and members, with no text in between. Each needs its library's
// headers alone; Boost.JSON is compiled into the program here.
#include <boost/json/src.hpp>
#include <iostream>
#include <string>
#include <thread>

#include "wirecall/adapt/boost_json.hpp"
#include "wirecall/adapt/nlohmann.hpp"
#include "wirecall/adapt/rapidjson.hpp"
#include "wirecall/wirecall.hpp"

// A member of a struct.
struct Report {
  std::string title;
  nlohmann::json body;
};

int main() {
  wirecall::Server server;
  server.method(
      "report",
      [](const nlohmann::json& rows) { return Report{"rows", {{"count", rows.size()}, {"first", rows.at(0)}}}; },
      {"rows"});
  server.method("first",
                [](const rapidjson::Document& rows) {
                  rapidjson::Document first;
                  first.CopyFrom(rows[0], first.GetAllocator());
                  return first;
                },
                {"rows"});
  const wirecall::Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  std::jthread loop{[&] { server.run(); }};

  // Each side has the library that it likes, or none.
  wirecall::Client client{endpoint.uri()};
  const boost::json::value rows{{{"id", 9'007'199'254'740'993}, {"name", "Ada"}}, {{"id", 2}, {"name", "Grace"}}};
  const auto report = client.call<nlohmann::json>("report", rows);
  const auto first = client.call<boost::json::value>("first", rows);
  std::cout << report << "\n" << first << "\n";

  server.stop();
  return report["body"]["first"]["id"] == 9'007'199'254'740'993 && first.at("name") == "Ada" ? 0 : 1;
}
