package header

import "net/http"

// Open lets pages of every origin read a response to GET or HEAD. It responds to the request that a browser makes
// before (Fetch standard section 3.3.3), and reports whether it was that.
func Open(w http.ResponseWriter, r *http.Request) (preflight bool) {
	head := w.Header()
	head.Set("Access-Control-Allow-Origin", "*")
	if r.Method != http.MethodOptions {
		return false
	}
	head.Set("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
	head.Set("Access-Control-Allow-Headers", "*")
	head.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
	return true
}
