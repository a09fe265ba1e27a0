// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/http/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <list>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "bridge/local/http/connection.h"
#include "bridge/local/http/socket.h"

namespace bridge::local::http {
class Server::Impl {
 public:
  Impl(ServerOptions options, Handler handler)
      : options_(std::move(options)), handler_(std::move(handler)) {}
  ~Impl() {
    Stop();
    if (wake_fd_ >= 0) close(wake_fd_);
  }

  absl::Status Listen() {
    if (options_.listen_fd >= 0) {
      listen_fd_ = options_.listen_fd;
      options_.port = LocalPort(listen_fd_);
    } else {
      const absl::StatusOr<int> fd = ListenTcp(options_.host, &options_.port);
      if (!fd.ok()) return fd.status();
      listen_fd_ = *fd;
    }
    wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd_ < 0) {
      close(listen_fd_);
      return absl::ResourceExhaustedError("no descriptor is left");
    }
    acceptor_ = std::thread([this] { AcceptLoop(); });
    return absl::OkStatus();
  }

  void Stop() {
    if (!acceptor_.joinable()) return;
    stop_.request_stop();
    const uint64_t one = 1;
    (void)!write(wake_fd_, &one, sizeof(one));
    acceptor_.join();
    std::unique_lock lock(mu_);
    for (const std::unique_ptr<Worker>& worker : workers_) worker->connection.Shutdown();
    // Every worker ends by itself now, and hands its thread over to be joined.
    ended_changed_.wait(lock, [this] { return workers_.size() == ended_.size(); });
    JoinEnded(lock);
  }

  int port() const { return options_.port; }
  const std::string& host() const { return options_.host; }
  size_t connections() const {
    const std::lock_guard lock(mu_);
    return workers_.size() - ended_.size();
  }

 private:
  struct Worker {
    template <class... Args>
    Worker(Impl* owner, Args&&... args) : impl(owner), connection(std::forward<Args>(args)...) {}
    Impl* const impl;
    Connection connection;
    pthread_t thread{};
    std::list<std::unique_ptr<Worker>>::iterator self;
  };

  void AcceptLoop() {
    while (!stop_.stop_requested()) {
      std::array<pollfd, 2> fds{pollfd{listen_fd_, POLLIN, 0}, pollfd{wake_fd_, POLLIN, 0}};
      if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) break;
      if (fds[1].revents != 0) break;
      sockaddr_storage address{};
      socklen_t size = sizeof(address);
      const int fd =
          accept4(listen_fd_, reinterpret_cast<sockaddr*>(&address), &size, SOCK_CLOEXEC);
      if (fd >= 0) {
        Serve(fd, HostPortOf(address));
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        // The connection stays in the backlog; wait for descriptors, but not past Stop().
        pollfd wake{wake_fd_, POLLIN, 0};
        poll(&wake, 1, 20);
      }
    }
    close(listen_fd_);
  }

  void Serve(int fd, HostPort peer) {
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    std::unique_lock lock(mu_);
    JoinEnded(lock);
    if (workers_.size() >= options_.max_connections) {
      close(fd);
      return;
    }
    workers_.push_back(std::make_unique<Worker>(this, fd, std::move(peer.host), peer.port, options_,
                                                handler_, stop_.get_token()));
    Worker* worker = workers_.back().get();
    worker->self = std::prev(workers_.end());
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, options_.stack_bytes);
    const int error = pthread_create(&worker->thread, &attributes, &RunWorker, worker);
    pthread_attr_destroy(&attributes);
    if (error != 0) workers_.erase(worker->self);  // closes the connection
  }

  static void* RunWorker(void* argument) {
    auto* worker = static_cast<Worker*>(argument);
    Impl* impl = worker->impl;
    worker->connection.Run();
    const std::lock_guard lock(impl->mu_);
    // The peer must not wait for our next accept to see the end.
    worker->connection.Shutdown();
    impl->ended_.push_back(worker);
    impl->ended_changed_.notify_all();
    return nullptr;
  }

  // Joins threads that have nothing left to do but return.
  void JoinEnded(std::unique_lock<std::mutex>& lock) {
    const std::vector<Worker*> ended = std::exchange(ended_, {});
    std::list<std::unique_ptr<Worker>> gone;
    for (Worker* worker : ended) gone.splice(gone.end(), workers_, worker->self);
    lock.unlock();
    for (const std::unique_ptr<Worker>& worker : gone) pthread_join(worker->thread, nullptr);
    lock.lock();
  }

  ServerOptions options_;
  const Handler handler_;
  int listen_fd_ = -1;
  int wake_fd_ = -1;
  std::stop_source stop_;
  std::thread acceptor_;

  mutable std::mutex mu_;
  std::condition_variable ended_changed_;
  std::list<std::unique_ptr<Worker>> workers_;  // running, and ended but not yet joined
  std::vector<Worker*> ended_;
};

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options, Handler handler) {
  auto impl = std::make_unique<Impl>(std::move(options), std::move(handler));
  if (absl::Status listening = impl->Listen(); !listening.ok()) return listening;
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

int Server::port() const { return impl_->port(); }
const std::string& Server::host() const { return impl_->host(); }
std::string Server::url() const {
  const std::string& host = impl_->host();
  const bool v6 = host.find(':') != std::string::npos;
  return "http://" + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port());
}
void Server::Stop() { impl_->Stop(); }
size_t Server::connections() const { return impl_->connections(); }

}  // namespace bridge::local::http
