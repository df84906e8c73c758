// A web server on the loopback interface, inside the test: it answers as it is told, badly too, and
// remembers what it was asked.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace ample::testing {

class HttpServer {
 public:
  struct Answer {
    std::string body = {};
    int status = 200;
    std::string location = {};                   // where to look instead
    bool ranges = true;                          // else everything is sent, whatever was asked for
    bool length = true;                          // whether it says how much will come
    std::optional<std::size_t> only = {};        // bytes of the body that are sent
    enum class Then { close, stall } then = {};  // what follows these
  };
  struct Request {
    std::string path;
    std::string range;  // as in "bytes=12-", empty without
    std::string agent;
  };

  HttpServer() {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    if (::bind(listener_, any, size) != 0 || ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, any, &size) != 0) {
      throw std::runtime_error("no server on the loopback interface");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  HttpServer(HttpServer&&) = delete;
  HttpServer& operator=(HttpServer&&) = delete;
  ~HttpServer() {
    stop_ = true;
    thread_.join();
    ::close(listener_);
  }

  [[nodiscard]] std::string url(const std::string& path = "") const {
    return fmt::format("http://127.0.0.1:{}{}", port_, path);
  }

  /// The answers to the requests for a path, one after the other; the last is given for ever. Paths
  /// without answers are not found.
  void answer(const std::string& path, std::vector<Answer> answers) {
    const std::scoped_lock lock(mutex_);
    answers_[path] = std::move(answers);
  }

  [[nodiscard]] std::vector<Request> requests() const {
    const std::scoped_lock lock(mutex_);
    return requests_;
  }

 private:
  /// False if the server is stopped first.
  bool wait_for(int socket) const {
    while (!stop_) {
      pollfd waiting{.fd = socket, .events = POLLIN, .revents = 0};
      if (::poll(&waiting, 1, 10) > 0) return true;
    }
    return false;
  }

  void serve() {
    while (wait_for(listener_)) {
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) continue;
      talk(client);
      ::close(client);
    }
  }

  void talk(int client) {
    std::string text;
    std::array<char, 4096> block{};
    while (!text.ends_with("\r\n\r\n")) {
      const ssize_t n = wait_for(client) ? ::recv(client, block.data(), block.size(), 0) : 0;
      if (n <= 0) return;
      text.append(block.data(), static_cast<std::size_t>(n));
    }
    const Request request{text.substr(4, text.find(' ', 4) - 4), field(text, "Range"),
                          field(text, "User-Agent")};
    const Answer answer = next_answer(request);
    send(client, response(request, answer));
    // Whoever asked will get tired of it, and close.
    if (answer.then == Answer::Then::stall && wait_for(client)) return;
  }

  static std::string field(const std::string& text, const std::string& name) {
    const std::string start = "\r\n" + name + ": ";
    const std::size_t at = text.find(start);
    if (at == std::string::npos) return "";
    const std::size_t first = at + start.size();
    return text.substr(first, text.find("\r\n", first) - first);
  }

  Answer next_answer(const Request& request) {
    const std::scoped_lock lock(mutex_);
    requests_.push_back(request);
    std::vector<Answer>& answers = answers_[request.path];
    if (answers.empty()) return {.body = "no such file", .status = 404};
    Answer first = answers.front();
    if (answers.size() > 1) answers.erase(answers.begin());
    return first;
  }

  static std::string response(const Request& request, const Answer& answer) {
    std::string body = answer.body;
    int status = answer.status;
    std::string fields = "Connection: close\r\n";
    if (status == 200 && answer.ranges && !request.range.empty()) {
      const std::size_t first = std::stoul(request.range.substr(std::string("bytes=").size()));
      if (first >= body.size()) {
        status = 416;
        body.clear();
      } else {
        status = 206;
        fields +=
            fmt::format("Content-Range: bytes {}-{}/{}\r\n", first, body.size() - 1, body.size());
        body.erase(0, first);
      }
    }
    if (!answer.location.empty()) fields += fmt::format("Location: {}\r\n", answer.location);
    if (answer.length) fields += fmt::format("Content-Length: {}\r\n", body.size());
    return fmt::format("HTTP/1.1 {} .\r\n{}\r\n{}", status, fields,
                       body.substr(0, answer.only.value_or(body.size())));
  }

  static void send(int client, const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t n = ::send(client, text.data() + done, text.size() - done, MSG_NOSIGNAL);
      if (n <= 0) return;
      done += static_cast<std::size_t>(n);
    }
  }

  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stop_ = false;
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<Answer>> answers_;
  std::vector<Request> requests_;
  std::thread thread_;
};

}  // namespace ample::testing
