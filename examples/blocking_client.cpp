// A client that waits for each answer. The server is in the same program here, on a port that the system chooses; in
// yours it is elsewhere, and its functions are known by their names only.
#include <expected>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "wirecall/wirecall.hpp"

struct Person {
  std::string name;
  int born = 0;
};

int main() {
  wirecall::Server server;
  server.method("subtract", [](int minuend, int subtrahend) { return minuend - subtrahend; },
                {"minuend", "subtrahend"});
  server.method("oldest",
                [](std::vector<Person> people) {
                  if (people.empty()) throw wirecall::Error{-50, "nobody there"};
                  Person oldest = people.front();
                  for (const Person& person : people) {
                    if (person.born < oldest.born) oldest = person;
                  }
                  return oldest;
                },
                {"people"});
  const wirecall::Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  std::jthread loop{[&] { server.run(); }};

  wirecall::Client client{endpoint.uri()};
  // The type of the result is named; that of the arguments is their own. An error is thrown.
  const int difference = client.call<int>("subtract", 42, 23);
  const std::vector<Person> people{{"Ada", 1815}, {"Grace", 1906}};
  const auto oldest = client.call<Person>("oldest", people);
  std::cout << difference << ", " << oldest.name << "\n";

  // The same without exceptions.
  const std::expected<Person, wirecall::Error> nobody = client.try_call<Person>("oldest", std::vector<Person>{});
  const auto unknown = client.try_call<int>("substract", 42, 23);
  std::cout << nobody.error().message() << ", " << unknown.error().message() << " " << unknown.error().data() << "\n";

  server.stop();
  return difference == 19 && oldest.name == "Ada" && nobody.error().code() == -50 &&
                 unknown.error().code() == static_cast<int>(wirecall::ErrorCode::method_not_found)
             ? 0
             : 1;
}
