package watch

import (
	"fmt"
	"net/url"
	"strings"

	"millrace/internal/web/iframe"
)

// What other sites are offered: the box for a player, and for the picture before it.
//
//nolint:gochecknoglobals // constants
var (
	playerBox  = iframe.Size{Width: 1280, Height: 720}
	pictureBox = iframe.Size{Width: 1280, Height: 1280}
)

// card is what other sites show of a link to a watch page; all addresses are whole.
type card struct {
	Title  string
	URL    string      // of the watch page
	Embed  string      // of the embed page; empty: it may be shown in no frame
	OEmbed string      // where oEmbed tells the same; empty as Embed
	Image  string      // empty: there is none
	Shape  iframe.Size // of the image; zero: not known
	Player iframe.Size
}

// Secure reports whether the service is reached over TLS.
func (c card) Secure() bool { return strings.HasPrefix(c.Embed, "https:") }

// Kind is the kind of a card of X. The one with a player has to have an image.
func (c card) Kind() string {
	switch {
	case c.Image == "":
		return "summary"
	case c.Embed == "":
		return "summary_large_image"
	}
	return "player"
}

// Card is what other sites are told; nil: nothing, for the video is not for everybody.
func (v view) Card() *card {
	if !v.Public || v.base == "" {
		return nil
	}
	page := v.base + "/watch/" + v.PlaybackID
	c := &card{Title: v.Heading(), URL: page, Player: v.size().Filling(playerBox)}
	c.Image, c.Shape = v.picture(pictureBox)
	if v.framers != nobody {
		c.Embed = v.base + "/embed/" + v.PlaybackID
		c.OEmbed = v.base + OEmbedPath + "?" + url.Values{"url": {page}}.Encode()
	}
	return c
}

// picture is the address of a picture that fits into a box, and its size as far as it is known; empty: there is none.
func (v view) picture(box iframe.Size) (address string, shape iframe.Size) {
	thumbnail := v.thumbnail()
	if thumbnail == "" {
		return "", iframe.Size{}
	}
	return fmt.Sprintf("%s/%s?height=%d&width=%d", v.base, thumbnail, box.Height, box.Width), v.size().Within(box)
}

func (v view) size() iframe.Size { return iframe.Size{Width: v.Width, Height: v.Height} }
