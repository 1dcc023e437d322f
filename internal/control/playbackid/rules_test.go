package playbackid

import (
	"slices"
	"strings"
	"testing"

	"millrace/internal/fault"
)

func TestCheckAll(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		policies []Policy
		advanced []Request
		want     []string
	}{
		{"none", nil, nil, nil},
		{"plain", []Policy{Public, Signed, Public}, nil, nil},
		{"advanced", nil, []Request{{Policy: Public}, {Policy: Signed}, {Policy: DRM, DRMConfigurationID: "d"}}, nil},
		{"drm without a configuration", nil, []Request{{Policy: DRM}}, nil},
		{
			"both",
			[]Policy{Public},
			[]Request{{Policy: Public}},
			[]string{"n.playback_policies and n.advanced_playback_policies must not be used together"},
		},
		{
			"plain drm",
			[]Policy{Public, DRM},
			nil,
			[]string{
				"n.playback_policies[1] must be public or signed; drm is asked for by n.advanced_playback_policies",
			},
		},
		{
			"unknown",
			[]Policy{"private"},
			[]Request{},
			[]string{"n.playback_policies[0] must be one of: public, signed"},
		},
		{
			"configuration without drm", nil,
			[]Request{{Policy: Signed, DRMConfigurationID: "d"}},
			[]string{
				"n.advanced_playback_policies[0].drm_configuration_id may be set only when " +
					"n.advanced_playback_policies[0].policy is drm",
			},
		},
		{
			"no policy", nil,
			[]Request{{}},
			[]string{"n.advanced_playback_policies[0].policy must be one of: public, signed, drm"},
		},
		{
			"U+0000", nil,
			[]Request{{Policy: DRM, DRMConfigurationID: "\x00"}},
			[]string{"n.advanced_playback_policies[0].drm_configuration_id must not contain the character U+0000"},
		},
		{"too many", make([]Policy, Max+1), nil, []string{"n.playback_policies may have at most 100 entries"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var l fault.List
			CheckAll(&l, "n", tt.policies, tt.advanced)
			if got := fault.Messages(l.Err()); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestNewAll(t *testing.T) {
	t.Parallel()
	got := NewAll([]Policy{Public, Signed}, []Request{{Policy: DRM, DRMConfigurationID: "d"}})
	if len(got) != 3 || got[0].Policy != Public || got[1].Policy != Signed || got[2].DRMConfigurationID != "d" {
		t.Errorf("got %+v", got)
	}
	if Index(got, got[1].ID) != 1 || Index(got, "x") != -1 {
		t.Error("not found where it is")
	}
	if got[0].ID == got[1].ID ||
		strings.Trim(string(got[0].ID), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") != "" {
		t.Errorf("IDs %v", got)
	}
}
