package e2e

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"millrace/internal/programtest"
	"millrace/test/rig"
)

// TestOfficialClient has the official client library upload a file, play it and read what was delivered. What needs no
// media is in internal/web/api.
func TestOfficialClient(t *testing.T) {
	rig.Parallel(t)
	rig.On(t, rig.Scaled, func(t *testing.T, p rig.Pair) {
		programtest.NodePackages(t, "../sdk")
		s := rig.Start(t, rig.Options{Pair: p})
		file := rig.File(t, "a.mp4", rig.Clip{Size: "640x360", Kbit: 500, GOP: 2, Seconds: 9})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		token, secret := s.Token()
		cmd := exec.CommandContext(ctx, "node", "media.mjs", s.HTTP, token, secret, file)
		cmd.Dir = "../sdk"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
	})
}
