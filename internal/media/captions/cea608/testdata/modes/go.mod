module make

go 1.26

require github.com/Eyevinn/go-608 v0.6.0
