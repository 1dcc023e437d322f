package publish

import (
	"testing"

	"millrace/internal/web/static/statictest"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	statictest.Status(t, Handler(), map[string]statictest.Want{
		"page":          {Method: "GET", Target: "/publish/", Status: 200},
		"head":          {Method: "HEAD", Target: "/publish/", Status: 200},
		"without slash": {Method: "GET", Target: "/publish", Status: 301, Location: "publish/"},
		"post":          {Method: "POST", Target: "/publish/", Status: 405},
		"script":        {Method: "GET", Target: "/publish/assets/publish.js", Status: 200},
		"module":        {Method: "GET", Target: "/publish/assets/whip.js", Status: 200},
		"style":         {Method: "GET", Target: "/publish/assets/publish.css", Status: 200},
		"no asset":      {Method: "GET", Target: "/publish/assets/publish.html", Status: 404},
		"upwards":       {Method: "GET", Target: "/publish/assets/../publish.go", Status: 404},
		"deeper":        {Method: "GET", Target: "/publish/key", Status: 404},
	})
}

func TestPageIsClosed(t *testing.T) {
	t.Parallel()
	statictest.Closed(t, Handler(), "/publish/", 1, 3, "frame-ancestors 'none'")
}
