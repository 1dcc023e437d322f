package main

import (
	"os"
	"testing"
)

// TestListsOf: the lists are found in the API's document.
func TestListsOf(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../internal/web/api/testdata/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	lists, err := listsOf(document)
	if err != nil {
		t.Fatal(err)
	}
	for path, permission := range map[string]string{
		"/video/v1/assets": "video:read", "/system/v1/webhooks/{webhook_id}/deliveries": "system:read",
		"/video/v1/delivery-usage": "video:read", "/system/v1/environments": "installation:read",
	} {
		if lists[path] != permission {
			t.Errorf("%s takes %q, want %q", path, lists[path], permission)
		}
	}
	for _, never := range []string{"/video/v1/assets/{asset_id}", "/system/v1/events/stream"} {
		if _, is := lists[never]; is {
			t.Errorf("%s is no list", never)
		}
	}
	if _, err = filled("/a/{asset_id}/{b}", map[string]string{"asset_id": "1"}); err == nil {
		t.Error("a list without an ID is passed over")
	}
}
