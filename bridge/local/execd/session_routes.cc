// SPDX-License-Identifier: Apache-2.0
#include "bridge/local/execd/session_routes.h"

#include "bridge/local/execd/reply.h"

namespace bridge::local::execd {

using http::Exchange;

void AddSessionRoutes(http::Router& router, Sessions& sessions) {
  router.Add("POST", "/session", [&sessions](Exchange& x) {
    const auto body = ReadBody(x);
    if (!body) return;
    std::string id;
    if (const auto error = sessions.Create(*body, &id)) {
      ReplyError(x, *error);
    } else {
      ReplyJson(x, 200, "{\"session_id\":\"" + id + "\"}");
    }
  });
  router.Add("POST", "/session/{id}/run", [&sessions](Exchange& x) {
    const auto body = ReadBody(x);
    if (!body) return;
    HttpEventStream stream(x);
    stream.FinishWith(sessions.Run(x.request().param("id"), *body, stream));
  });
  router.Add("DELETE", "/session/{id}", [&sessions](Exchange& x) {
    const std::string& id = x.request().param("id");
    if (sessions.Close(id)) {
      ReplyEmpty(x);
    } else {
      ReplyError(x, {404, kContextNotFound, "session " + id + " not found"});
    }
  });
}

}  // namespace bridge::local::execd
